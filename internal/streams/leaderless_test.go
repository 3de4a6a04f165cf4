package streams

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// leads is how a test's stream is led.
const (
	ledWell      = iota
	ledSilently  // its leader does not answer
	ledByNone    // a replica answers, and names no leader: the group lost its majority
	ledByNothing // none of its replicas is there
)

// A stream whose leader does not answer is named, and one that does not have a leader, and no other: not one that is not there, nor any of a server alone.
func TestLeaderless(t *testing.T) {
	t.Parallel()
	srv, alone := readsStream(t)
	var led atomic.Int32
	through := embeddedtest.LinkProxy(t, srv.NC().ConnectedUrl(), func(r embeddedtest.Request) embeddedtest.Fate {
		return embeddedtest.Fate{Drop: led.Load() == ledSilently && strings.HasSuffix(r.Subject, ".STREAM.INFO."+testStream)}
	}, func(a embeddedtest.Answer) embeddedtest.Fate {
		if !bytes.Contains(a.Data, []byte("stream_info_response")) {
			return embeddedtest.Fate{}
		}
		switch led.Load() {
		case ledByNone:
			info := map[string]json.RawMessage{}
			_ = json.Unmarshal(a.Data, &info)
			info["cluster"] = json.RawMessage(`{"name":"three"}`)
			data, _ := json.Marshal(info)
			return embeddedtest.Fate{Data: data}
		case ledByNothing:
			return embeddedtest.Fate{Data: []byte(`{"error":{"code":500,"err_code":10118,"description":"stream is offline"},"type":"io.nats.jetstream.api.v1.stream_info_response"}`)}
		}
		return embeddedtest.Fate{}
	})
	_, js := embeddedtest.Dial(t, through+",nats://127.0.0.1:1", nats.DontRandomize()) // a second address makes it a cluster to the client
	embeddedtest.Eventually(t, maxWait, func() error {                                 // a slow machine may take longer than a probe waits
		if got := Leaderless(t.Context(), js, testStream); len(got) > 0 {
			return ErrCut
		}
		return nil
	})
	for _, how := range []int32{ledSilently, ledByNone, ledByNothing} {
		led.Store(how)
		if got := Leaderless(t.Context(), js, testStream); !slices.Equal(got, []string{testStream}) {
			t.Errorf("%d: %v do not have a leader, want %s", how, got, testStream)
		}
	}
	if got := Leaderless(t.Context(), alone, testStream, "NOT_THERE"); len(got) > 0 {
		t.Errorf("on a server alone %v do not have a leader", got)
	}
	led.Store(ledWell)
	embeddedtest.Eventually(t, maxWait, func() error {
		if got := Leaderless(t.Context(), js, testStream, "NOT_THERE"); len(got) > 0 {
			return ErrCut
		}
		return nil
	})
}
