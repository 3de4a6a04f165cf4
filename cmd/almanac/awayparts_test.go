package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/query"
)

// partPage is a part alone, and what its /metrics has.
type partPage struct {
	args  []string
	needs []string // servers
	knows string   // what it knows of itself, whichever is away
	aged  string   // the source of that; empty: it is counted
	at    string
}

// page reads /metrics.
func (p *partPage) page(t *testing.T) (string, error) {
	t.Helper()
	began := time.Now()
	resp, err := (&http.Client{Timeout: 30 * time.Second}).Get("http://" + p.at + "/metrics")
	if err != nil {
		return "", fmt.Errorf("%s: %w", p.args[0], err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s, %w: %s", p.args[0], resp.Status, err, text)
	}
	if took := time.Since(began); os.Getenv(awayTimedEnv) != "" && took > awayWithin {
		t.Errorf("%s answered after %s, more than %s", p.args[0], took.Round(time.Millisecond), awayWithin)
	}
	page := "\n"
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "almanac_") {
			page += line
		}
	}
	return page, nil
}

// until waits until the page has lines. Those of an age, and those without a value, are how one begins.
func (p *partPage) until(t *testing.T, state string, lines ...string) {
	t.Helper()
	embeddedtest.Eventually(t, maxWait, func() error {
		page, err := p.page(t)
		if err != nil {
			return err
		}
		for _, line := range lines {
			whole := "\n" + line
			if !strings.HasSuffix(line, " ") && !strings.Contains(line, "_age_seconds") {
				whole += "\n"
			}
			if !strings.Contains(page, whole) {
				return fmt.Errorf("%s: /metrics of %s lacks %q: %s", state, p.args[0], line, page)
			}
		}
		return nil
	})
}

// A router, a sink and a dispatcher alone are cut off from the servers that they need, by connections that end and by connections in which nothing comes
// through. /metrics of each answers, names the servers that are away, says how long they are, and has with its age what the part knows. So it does of a
// part that starts then.
func TestAwayOfPartsAlone(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t)
	events, nearNATS := embeddedtest.NewCable(t, s.NATSURL)
	rows, nearClickHouse := embeddedtest.NewCable(t, s.HTTPDSN())
	b := newBox(t, "ALMANAC_NATS="+nearNATS, "ALMANAC_CLICKHOUSE="+nearClickHouse, "ALMANAC_LOG_FORMAT=json", "ALMANAC_EVENTS_BYTES=1GiB", "ALMANAC_SHARDS_BYTES=1GiB", natsTimeoutEnv+"=")
	b.write("almanac.yaml", "topics: [{name: auth}]")
	both := []string{query.ServerClickHouse, query.ServerNATS}
	parts := []*partPage{
		{args: []string{"router"}, needs: both[1:], knows: `almanac_router_routed_events_total{topic="auth"} 50`},
		{args: []string{"sink"}, needs: both, knows: `almanac_sink_stored_events_total{topic="auth"} 50`},
		{args: []string{"timers", "run"}, needs: both[1:], knows: `almanac_dispatcher_pending{group="mails",topic="timers"} 1`, aged: "dispatcher"},
	}
	start := func(p *partPage, says string) {
		p.at = embeddedtest.FreeAddress(t)
		b.background(append(slices.Clone(p.args), "--http", p.at)...).says(says)
	}
	for _, p := range parts {
		start(p, `"message":"ready"`)
	}
	b.ok(lines(50), "send", "auth")
	b.ok("", "timers", "groups", "apply", "mails")
	b.ok("", "timers", "create", "mails", "one", "--due", "+1h", "--url", "http://127.0.0.1:1/")
	there := func(state string, parts ...*partPage) {
		t.Helper()
		for _, p := range parts {
			lines := []string{`almanac_ready 1`, p.knows}
			for _, server := range p.needs {
				lines = append(lines, `almanac_server_up{server="`+server+`"} 1`, `almanac_server_away_seconds{server="`+server+`"} 0`)
			}
			p.until(t, state, lines...)
			if page, _ := p.page(t); len(p.needs) == 1 && strings.Contains(page, `server="`+query.ServerClickHouse+`"`) {
				t.Errorf("%s, which needs no ClickHouse, tells of one: %s", p.args[0], page)
			}
		}
	}
	there("all is there", parts...)
	type cable = *embeddedtest.Cable
	ends, stands := cable.Cut, cable.Freeze
	for _, c := range []struct {
		name    string
		how     func(c cable, away bool)
		cables  []cable
		servers []string
	}{
		{"ClickHouse is gone", ends, []cable{rows}, both[:1]},
		{"ClickHouse stands still", stands, []cable{rows}, both[:1]},
		{"NATS is gone", ends, []cable{events}, both[1:]},
		{"NATS stands still", stands, []cable{events}, both[1:]},
		{"both are gone", ends, []cable{rows, events}, both},
		{"both stand still", stands, []cable{rows, events}, both},
	} {
		for _, one := range c.cables {
			c.how(one, true)
		}
		for _, p := range parts {
			lines, hit := []string{p.knows, `almanac_metrics_source_age_seconds{source="servers"} 0`, `almanac_metrics_source_failed{source="servers"} 0`}, false
			for _, server := range p.needs {
				if !slices.Contains(c.servers, server) {
					lines = append(lines, `almanac_server_up{server="`+server+`"} 1`)
					continue
				}
				lines, hit = append(lines, `almanac_server_up{server="`+server+`"} 0`, `almanac_server_away_seconds{server="`+server+`"} `), true
			}
			if p.aged != "" {
				lines = append(lines, `almanac_metrics_source_age_seconds{source="`+p.aged+`"} `)
			}
			if hit {
				lines = append(lines, `almanac_ready 0`)
			}
			if hit && p.aged != "" { // it lets its lanes go, whose timers others may call, and then it does not have one
				lines = lines[1:]
			}
			p.until(t, c.name, lines...)
		}
		for _, one := range c.cables {
			c.how(one, false)
		}
		there(c.name+", and back", parts...)
	}

	rows.Cut(true)
	late := &partPage{args: []string{"sink"}}
	start(late, "not ready yet")
	late.until(t, "a start without ClickHouse", `almanac_server_up{server="ClickHouse"} 0`, `almanac_server_up{server="NATS"} 1`)
	events.Cut(true)
	for _, p := range []*partPage{late, {args: []string{"router"}}, {args: []string{"timers", "run"}}} {
		if p != late {
			start(p, "not ready yet")
		}
		p.until(t, "a start without both", `almanac_server_up{server="NATS"} 0`, `almanac_server_away_seconds{server="NATS"} `)
	}
}
