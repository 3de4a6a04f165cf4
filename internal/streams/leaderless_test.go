package streams

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A stream whose leader does not answer is named, and no other: not one that is not there, nor any of a server alone.
func TestLeaderless(t *testing.T) {
	t.Parallel()
	srv, alone := readsStream(t)
	var silent atomic.Bool
	through := embeddedtest.LinkProxy(t, srv.NC().ConnectedUrl(), func(r embeddedtest.Request) embeddedtest.Fate {
		return embeddedtest.Fate{Drop: silent.Load() && strings.HasSuffix(r.Subject, ".STREAM.INFO."+testStream)}
	}, func(embeddedtest.Answer) embeddedtest.Fate { return embeddedtest.Fate{} })
	_, js := embeddedtest.Dial(t, through+",nats://127.0.0.1:1", nats.DontRandomize()) // a second address makes it a cluster to the client
	embeddedtest.Eventually(t, maxWait, func() error {                                 // a slow machine may take longer than a probe waits
		if got := Leaderless(t.Context(), js, testStream); len(got) > 0 {
			return ErrCut
		}
		return nil
	})
	silent.Store(true)
	if got := Leaderless(t.Context(), js, testStream); !slices.Equal(got, []string{testStream}) {
		t.Errorf("%v do not have a leader, want %s", got, testStream)
	}
	if got := Leaderless(t.Context(), alone, testStream, "NOT_THERE"); len(got) > 0 {
		t.Errorf("on a server alone %v do not have a leader", got)
	}
	silent.Store(false)
	embeddedtest.Eventually(t, maxWait, func() error {
		if got := Leaderless(t.Context(), js, testStream, "NOT_THERE"); len(got) > 0 {
			return ErrCut
		}
		return nil
	})
}
