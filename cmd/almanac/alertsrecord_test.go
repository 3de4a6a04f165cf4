package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// TestRecordsAsUsersOfTheirOwn holds that parts with a NATS user each record what a rule says, into a topic of two lanes, end an alert over it when its rule
// goes and forget what was known of it, and that NATS refuses them nothing.
func TestRecordsAsUsersOfTheirOwn(t *testing.T) {
	t.Parallel()
	p := newApart(t)
	p.part(access.UserRouter, "router")
	p.part(access.UserSink, "sink")
	op, reader := p.as(access.UserOperator), p.as(access.UserReader)
	op.ok("", "topics", "apply", "metrics", "--kind", "metric", "--lanes", "2")
	op.ok(`
groups:
- name: rooms
  interval: 1s
  rules:
  - {record: "room:temperature:max", expr: max by (room) (temperature), labels: {of: hosts}}
  - {alert: Hot, expr: 'room:temperature:max > 90'}
`, "alerts", "apply", "--topic", "metrics", "-f", "-")
	now := time.Now().UTC().Format(time.RFC3339Nano)
	p.as(access.UserProducer).ok(fmt.Sprintf(`{"ts":%q,"type":"temperature","value":95,"room":"a"}`+"\n"+`{"ts":%q,"type":"temperature","value":20,"room":"b"}`+"\n", now, now), "send", "metrics", "--format", "ndjson")
	embeddedtest.Eventually(t, maxWait, func() error {
		for _, room := range []string{"a", "b"} {
			of := reader.run("", "query", "metrics", "--where", `type = "room:temperature:max" AND attributes.room = "`+room+`" AND attributes.of = "hosts"`, "--count", "-o", "table")
			if of.code != exitOK || strings.TrimSpace(of.out) == "0" {
				return fmt.Errorf("room %s: %s%s", room, of.out, of.err)
			}
		}
		return says(reader, "Hot firing")
	})
	op.ok("", "alerts", "rm", "rooms")
	embeddedtest.Eventually(t, maxWait, func() error {
		s, err := tryDecoded[alerts.Overview](reader, "alerts", "ls", "-o", "json")
		if err == nil && (len(s.Alerts) > 0 || len(s.Topics) > 0 || len(s.Recording) > 0) {
			err = fmt.Errorf("listed are %+v", s)
		}
		return errors.Join(err, says(reader, "Hot inactive"))
	})
	for _, line := range p.nats.refusals() {
		t.Error(line)
	}
}

// says is nil where a transition is this. Others may have come since: what was sent is no longer looked back at after five minutes.
func says(b *box, want string) error {
	page, err := tryDecoded[alerts.Page](b, "alerts", "history", "-o", "json")
	if err != nil {
		return err
	}
	for i := range page.Alerts {
		if page.Alerts[i].Rule+" "+string(page.Alerts[i].State) == want {
			return nil
		}
	}
	return fmt.Errorf("the history is %+v, want %s in it", page.Alerts, want)
}
