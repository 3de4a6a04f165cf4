package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/doctor"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/query"
)

// TestAway cuts a gateway and verbs off from ClickHouse and then from NATS: what tells an operator how Almanac is goes on answering with
// what is known, and names the server.
func TestAway(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t)
	events, nearNATS := embeddedtest.NewCable(t, s.NATSURL)
	rows, nearClickHouse := embeddedtest.NewCable(t, s.HTTPDSN())
	b := newBox(t, "ALMANAC_NATS="+nearNATS, "ALMANAC_CLICKHOUSE="+nearClickHouse, "ALMANAC_LOG_FORMAT=json", "ALMANAC_EVENTS_BYTES=1GiB", "ALMANAC_SHARDS_BYTES=1GiB")
	b.write("almanac.yaml", "topics: [{name: auth}]")
	at := embeddedtest.FreeAddress(t)
	router := b.background("router")
	router.says("ready")
	gateway := b.background("gateway", "--http", at, "--otlp-http", "off", "--otlp-grpc", "off")
	gateway.says("ready")
	get := func(path string) string {
		resp, err := http.Get("http://" + at + path) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v: %s", path, resp.Status, err, text)
		}
		return string(text)
	}
	until := func(path, what string) {
		t.Helper()
		embeddedtest.Eventually(t, maxWait, func() error {
			if text := get(path); !strings.Contains(text, what) {
				return fmt.Errorf("%s lacks %q: %s", path, what, text)
			}
			return nil
		})
	}
	if resp, err := http.Post("http://"+at+"/v1/topics/auth/events", "text/plain", strings.NewReader(lines(50))); err != nil || resp.StatusCode != http.StatusOK { //nolint:noctx // a test
		t.Fatal(err, resp)
	} else {
		_ = resp.Body.Close()
	}
	until("/metrics", `almanac_sink_lag_events{topic="auth"} 50`) // no sink runs
	until("/metrics", `almanac_server_up{server="ClickHouse"} 1`)
	for _, c := range []struct {
		cable  *embeddedtest.Cable
		server string
		knows  []string // what is known without it
	}{
		{rows, query.ServerClickHouse, []string{`almanac_sink_lag_events{topic="auth"} 50`, `almanac_members{role="router"} 1`, `almanac_input_events_total{input="lines",outcome="stored",topic="auth"} 50`}},
		{events, query.ServerNATS, []string{`almanac_sink_lag_events{topic="auth"} 50`, `almanac_input_events_total{input="lines",outcome="stored",topic="auth"} 50`}},
	} {
		c.cable.Cut(true)
		began := time.Now()
		until("/metrics", `almanac_server_up{server="`+c.server+`"} 0`)
		for _, what := range c.knows {
			until("/metrics", what)
		}
		for _, path := range []string{"/v1/lag", "/v1/status"} {
			var answer struct {
				Away []query.Away     `json:"away"`
				Lag  *query.LagReport `json:"lag"`
				query.LagReport
			}
			embeddedtest.Eventually(t, maxWait, func() error {
				answer.Lag = nil
				if err := json.Unmarshal([]byte(get(path)), &answer); err != nil {
					return err
				}
				if len(answer.Away) != 1 || answer.Away[0].Server != c.server || answer.Away[0].Why == "" || answer.Away[0].Since.Before(began.Add(-time.Second)) || answer.Away[0].Since.After(time.Now()) {
					return fmt.Errorf("%s: %+v is away", path, answer.Away)
				}
				return nil
			})
			if lag := answer.Lag; lag != nil {
				answer.LagReport = *lag
			}
			if len(answer.Topics) != 1 || answer.Topics[0].Unstored == nil || *answer.Topics[0].Unstored != 50 || *answer.Topics[0].UnstoredSeconds <= 0 || len(answer.Streams) == 0 {
				t.Errorf("%s without %s: %+v", path, c.server, answer.LagReport)
			}
		}
		if status := get("/v1/status"); !strings.Contains(status, `"input":"lines","topic":"auth"`) || !strings.Contains(status, `"events":50,`) || !strings.Contains(status, `"servers":{"nats":"`) {
			t.Errorf("/v1/status without %s does not say what came: %s", c.server, status)
		}
		r := b.run("", "doctor", "-o", "json")
		var found []doctor.Finding
		if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != exitFailed ||
			!slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Check == c.server && f.Status == doctor.Fail }) {
			t.Errorf("doctor without %s: exit %d, %v, %s", c.server, r.code, err, r.out)
		}
		if c.server == query.ServerClickHouse {
			r = b.run("", "lag")
			if r.code != exitOK || !strings.Contains(r.err, c.server+" is away since") {
				t.Errorf("lag without %s: exit %d, %s%s", c.server, r.code, r.out, r.err)
			}
		} else if r = b.run("", "lag"); r.code == exitOK || !strings.Contains(r.err, c.server) {
			t.Errorf("lag without %s: exit %d, %s%s", c.server, r.code, r.out, r.err)
		}
		c.cable.Cut(false)
		until("/metrics", `almanac_server_up{server="`+c.server+`"} 1`)
		embeddedtest.Eventually(t, maxWait, func() error {
			if text := get("/v1/lag"); !strings.Contains(text, `"away":[]`) {
				return errors.New(text)
			}
			return nil
		})
	}
}
