package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/schemas"
)

// send sends all diffs while parts are killed. Of the one that has an earlier copy the later is stored first, and the sink
// is started again in between.
func (m *metered) send() {
	m.t.Helper()
	all := diffs(m.t.(*testing.T))
	m.one(&all[0])
	m.stored("usage")
	m.Sinks[0].Kill()
	m.start(m.Sinks[0])
	var order []int // diffs by their number, what is none by its number below zero
	for range meterTimes {
		for i := range all {
			order = append(order, i)
		}
	}
	order = order[1:] // it was sent
	for i := range badDiffs {
		order = append(order, -1-i)
	}
	written := make(chan error, 1)
	go func() { written <- errors.Join(m.writeAll(0), m.writeAll(1)) }()
	m.shuffled(len(order), func(n int) {
		if i := order[n]; i < 0 {
			m.badDiff(-1 - i)
		} else {
			m.one(&all[i])
		}
	})
	if err := <-written; err != nil {
		m.t.Fatal(err)
	}
	m.heal(true)
	m.stored("usage")
}

// one sends a diff, as an event or as JSON.
func (m *metered) one(d *meter.Diff) {
	m.t.Helper()
	if m.rnd.IntN(2) == 0 {
		m.json(d.Time, fmt.Sprintf(`{"type":"bytes","provider":"p","ts":%q,"space":%q,"cause":%q,"delta":%d,"user_id":%q}`, d.Time.Format(time.RFC3339Nano), d.Space, d.Cause, d.Delta, d.Customer))
		return
	}
	if err := m.publish(made(d.Event())); err != nil {
		m.t.Fatal(err)
	}
}

// badDiff sends what is not a diff.
func (m *metered) badDiff(n int) {
	m.t.Helper()
	at, rest := time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC), badDiffs[n].rest
	if strings.Contains(rest, "AHEAD") {
		at = time.Now().UTC().Add(time.Hour)
		rest = strings.Replace(rest, "AHEAD", at.Format(time.RFC3339Nano), 1)
	} else {
		rest += `,"ts":"` + at.Format(time.RFC3339Nano) + `"`
	}
	m.json(at, `{"type":"bytes","provider":"p","space":"s1","user_id":"cust-s1",`+rest+`}`)
}

// writeAll has twenty writers send what is theirs, and one the bill; in the second turn each sends what another did.
func (m *metered) writeAll(turn int) error {
	const writers = 20
	all := writerDiffs(m.writers)
	var g errgroup.Group
	send := func(seed int, events []schemas.Event) {
		rnd := rand.New(rand.NewPCG(uint64(seed), uint64(turn)))
		rnd.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		g.Go(func() error { return m.publish(events...) })
	}
	for w := range writers {
		var events []schemas.Event
		for i := (w + turn) % writers; i < len(all); i += writers {
			events = append(events, made(all[i].Event()))
		}
		send(w, events)
	}
	var bill []schemas.Event
	for i := range m.focus {
		bill = append(bill, focusEvent(i, &m.focus[i]))
	}
	send(writers, bill)
	return g.Wait()
}
