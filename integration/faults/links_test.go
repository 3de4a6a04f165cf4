package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// Rows 12 and 13: every link is cut in the middle of a message, swallowed, half-open, slow and late, again and again.
func TestLinks(t *testing.T) {
	t.Parallel()
	_, rnd := Seed(t)
	rounds := Rounds(t)
	h := Build(t, Plan{Proxied: true, InsertTimeout: 10 * time.Second, Writers: []Writer{{Rate: 1500}, {Rate: 1500}}})
	h.StartWriters()
	flows(t, h)
	links := []struct {
		name string
		p    *Proxy
	}{{"producers-NATS", h.WriterLink}, {"router-NATS", h.RouterLink}, {"sink-NATS", h.SinkLink}, {"sink-ClickHouse", h.InsertLink}}
	var times Times
	for round := range rounds {
		for _, f := range linkFaults {
			if f.name == "half-open" && round > 0 {
				continue // found only by unanswered pings: once is enough
			}
			for _, l := range links {
				f.do(l.p, rnd)
				if err := backoff.Sleep(t.Context(), f.last); err != nil {
					t.Fatal(err)
				}
				l.p.Heal()
				took, err := h.Flows(t.Context(), time.Now())
				if err != nil {
					t.Fatalf("after %s of %s: %v", f.name, l.name, err)
				}
				times.Add(fmt.Sprintf("%s: %s", l.name, f.name), took)
			}
		}
	}
	h.Prove(2 * time.Minute)
	t.Logf("from healing until events flow:\n%s", &times)
}
