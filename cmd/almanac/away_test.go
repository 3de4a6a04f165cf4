package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/doctor"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/query"
)

// awayTimedEnv has TestAway look at how long each answer takes; make away sets it.
const awayTimedEnv = "ALMANAC_AWAY_TIMED"

// awayWithin is what an answer may take while a server is away: one of a gateway, and one of doctor and lag after their start.
const awayWithin = 2 * time.Second

// started is how long a verb takes that asks nothing: the start of the process, which is not part of what is timed.
func (b *box) started() time.Duration {
	b.t.Helper()
	began := time.Now()
	b.ok("", "version")
	return time.Since(began)
}

// TestAway cuts a gateway and verbs off from ClickHouse, from NATS and from both, by connections that end and by connections in which nothing
// comes through: what tells an operator how Almanac is goes on answering with what is known, and names the servers.
func TestAway(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t)
	events, nearNATS := embeddedtest.NewCable(t, s.NATSURL)
	rows, nearClickHouse := embeddedtest.NewCable(t, s.HTTPDSN())
	b := newBox(t, "ALMANAC_NATS="+nearNATS, "ALMANAC_CLICKHOUSE="+nearClickHouse, "ALMANAC_LOG_FORMAT=json", "ALMANAC_EVENTS_BYTES=1GiB", "ALMANAC_SHARDS_BYTES=1GiB", natsTimeoutEnv+"=")
	b.write("almanac.yaml", "topics: [{name: auth}]")
	at := embeddedtest.FreeAddress(t)
	router := b.background("router")
	router.says("ready")
	gateway := b.background("gateway", "--http", at, "--otlp-http", "off", "--otlp-grpc", "off")
	gateway.says("ready")
	timed := os.Getenv(awayTimedEnv) != ""
	get := func(path string) string {
		t.Helper()
		began := time.Now()
		defer func() {
			if took := time.Since(began); timed && took > awayWithin {
				t.Errorf("%s was answered after %s, more than %s", path, took.Round(time.Millisecond), awayWithin)
			}
		}()
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
	embeddedtest.Eventually(t, maxWait, func() error {
		resp, err := http.Post("http://"+at+"/v1/topics/auth/events", "text/plain", strings.NewReader(lines(50))) //nolint:noctx // a test
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
	embeddedtest.Eventually(t, maxWait, func() error { // no sink runs
		page := get("/metrics")
		if !strings.Contains(page, `almanac_sink_lag_events{topic="auth"} 50`) || !strings.Contains(page, `almanac_router_lag_bytes{topic="auth"} 0`) ||
			!strings.Contains(page, `almanac_sink_lag_bytes{topic="auth"} `) || strings.Contains(page, `almanac_sink_lag_bytes{topic="auth"} 0`) {
			return fmt.Errorf("50 events that wait for a sink, and their bytes, are not told: %s", page)
		}
		return nil
	})
	until("/metrics", `almanac_server_up{server="ClickHouse"} 1`)
	start := b.started()
	verb := func(args ...string) result {
		t.Helper()
		began := time.Now()
		r := b.run("", args...)
		if took := time.Since(began) - start; timed && took > awayWithin {
			t.Errorf("%s took %s and the %s of a start, more than %s", args[0], took.Round(time.Millisecond), start.Round(time.Millisecond), awayWithin)
		}
		return r
	}
	type cable = *embeddedtest.Cable
	lag := []string{`almanac_sink_lag_events{topic="auth"} 50`, `almanac_input_events_total{input="lines",outcome="stored",topic="auth"} 50`}
	ends, stands := cable.Cut, cable.Freeze
	for _, c := range []struct {
		name    string
		how     func(c cable, away bool)
		cables  []cable
		servers []string
		knows   []string // what is known without them
	}{
		{"ClickHouse is gone", ends, []cable{rows}, []string{query.ServerClickHouse}, append([]string{`almanac_members{role="router"} 1`}, lag...)},
		{"ClickHouse stands still", stands, []cable{rows}, []string{query.ServerClickHouse}, append([]string{`almanac_members{role="router"} 1`}, lag...)},
		{"NATS is gone", ends, []cable{events}, []string{query.ServerNATS}, lag},
		{"NATS stands still", stands, []cable{events}, []string{query.ServerNATS}, lag},
		{"both are gone", ends, []cable{rows, events}, []string{query.ServerClickHouse, query.ServerNATS}, lag},
		{"both stand still", stands, []cable{rows, events}, []string{query.ServerClickHouse, query.ServerNATS}, lag},
	} {
		for _, one := range c.cables {
			c.how(one, true)
		}
		began := time.Now()
		for _, server := range c.servers {
			until("/metrics", `almanac_server_up{server="`+server+`"} 0`)
		}
		for _, what := range c.knows {
			until("/metrics", what)
		}
		if slices.Contains(c.servers, query.ServerNATS) { // what was read before is there, with its age, but for who lives
			embeddedtest.Eventually(t, 2*maxWait, func() error { // a source whose last read took long is read again after four minutes
				if text := get("/metrics"); !strings.Contains(text, `almanac_metrics_source_failed{source="state"} 1`) {
					return fmt.Errorf("%s: the state was read: %s", c.name, text)
				}
				return nil
			})
			page := get("/metrics")
			for _, what := range []string{`almanac_metrics_source_age_seconds{source="state"} `, `almanac_stream_used_bytes{stream="EVENTS"} `, `almanac_shards{status="active",topic="auth"} `, `almanac_dead_letters{topic="auth"} 0`, `almanac_erasure_oldest_open_seconds 0`} {
				if !strings.Contains(page, "\n"+what) {
					t.Errorf("%s: /metrics lacks %q:\n%s", c.name, what, page)
				}
			}
			if strings.Contains(page, "\nalmanac_members{") {
				t.Errorf("%s: /metrics says who lives", c.name)
			}
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
				var names []string
				for _, one := range answer.Away {
					if names = append(names, one.Server); one.Why == "" || one.Since.Before(began.Add(-time.Second)) || one.Since.After(time.Now()) {
						return fmt.Errorf("%s: %+v is away", path, one)
					}
				}
				if !slices.Equal(names, c.servers) {
					return fmt.Errorf("%s: %v are away", path, names)
				}
				return nil
			})
			if lag := answer.Lag; lag != nil {
				answer.LagReport = *lag
			}
			if len(answer.Topics) != 1 || answer.Topics[0].Unstored == nil || *answer.Topics[0].Unstored != 50 || *answer.Topics[0].UnstoredSeconds <= 0 || len(answer.Streams) == 0 {
				t.Errorf("%s, %s: %+v", path, c.name, answer.LagReport)
			}
		}
		if status := get("/v1/status"); !strings.Contains(status, `"input":"lines","topic":"auth"`) || !strings.Contains(status, `"events":50,`) || !strings.Contains(status, `"servers":{"nats":"`) {
			t.Errorf("/v1/status, %s, does not say what came: %s", c.name, status)
		}
		for _, known := range []bool{true, false} { // whether a gateway can be asked
			args, since := []string{"doctor", "-o", "json"}, "it is not known since when"
			if known {
				args, since = append(args, "--http", at), "it is away since "
			}
			embeddedtest.Eventually(t, maxWait, func() error { // it gives a busy server no longer than one that is away
				r := verb(args...)
				var found []doctor.Finding
				err := json.Unmarshal([]byte(r.out), &found)
				for _, server := range c.servers {
					if err != nil || r.code != exitFailed || !slices.ContainsFunc(found, func(f doctor.Finding) bool {
						return f.Check == server && f.Status == doctor.Fail && strings.Contains(f.Found, since)
					}) {
						return fmt.Errorf("doctor, %s: exit %d, %w, %q is not said of %s: %s", c.name, r.code, err, since, server, r.out)
					}
				}
				return nil
			})
			if args = []string{"lag"}; known {
				args = append(args, "--http", at)
			}
			embeddedtest.Eventually(t, maxWait, func() error {
				switch r := verb(args...); {
				case known || slices.Equal(c.servers, []string{query.ServerClickHouse}):
					for _, server := range c.servers {
						if r.code != exitOK || !strings.Contains(r.err, server+" is away since") || !strings.Contains(r.out, "auth") {
							return fmt.Errorf("lag, %s: exit %d, %s%s", c.name, r.code, r.out, r.err)
						}
					}
				case r.code == exitOK || !strings.Contains(r.err, query.ServerNATS) || !strings.Contains(r.err, "name one by --http"):
					return fmt.Errorf("lag without a gateway, %s: exit %d, %s%s", c.name, r.code, r.out, r.err)
				}
				return nil
			})
		}
		for _, one := range c.cables {
			c.how(one, false)
		}
		for _, server := range c.servers {
			until("/metrics", `almanac_server_up{server="`+server+`"} 1`)
		}
		embeddedtest.Eventually(t, maxWait, func() error {
			if text := get("/v1/lag"); !strings.Contains(text, `"away":[]`) {
				return errors.New(text)
			}
			return nil
		})
	}
}
