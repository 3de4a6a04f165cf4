package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/producer"
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
		order = append(order, m.rnd.Perm(len(all))...)
	}
	order = slices.Delete(order, slices.Index(order, 0), slices.Index(order, 0)+1) // it was sent
	for i := range badDiffs {
		order = append(order, -1-i)
	}
	m.rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	written := make(chan error, 1)
	go func() { written <- errors.Join(m.writeAll(0), m.writeAll(1)) }()
	strikes := map[int]int{}
	for range m.kills {
		strikes[m.rnd.IntN(len(order))]++
	}
	for n, i := range order {
		for range strikes[n] {
			m.strike()
		}
		if i < 0 {
			m.bad(-1 - i)
			continue
		}
		m.one(&all[i])
	}
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
		m.json(d.Time, fmt.Sprintf(`"ts":%q,"space":%q,"cause":%q,"delta":%d,"user_id":%q`, d.Time.Format(time.RFC3339Nano), d.Space, d.Cause, d.Delta, d.Customer))
		return
	}
	p, err := producer.Connect(m.ctx, m.natsURL, producer.Config{Topic: "usage", Policy: producer.Block})
	if err == nil {
		err = errors.Join(p.Publish(m.ctx, d.Event()), p.Close(m.ctx))
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// bad sends what is not a diff.
func (m *metered) bad(n int) {
	m.t.Helper()
	at, rest := time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC), badDiffs[n].rest
	if strings.Contains(rest, "AHEAD") {
		at = time.Now().UTC().Add(time.Hour)
		rest = strings.Replace(rest, "AHEAD", at.Format(time.RFC3339Nano), 1)
	} else {
		rest += `,"ts":"` + at.Format(time.RFC3339Nano) + `"`
	}
	m.json(at, `"space":"s1","user_id":"cust-s1",`+rest)
}

// json publishes a line as it is, under any lane.
func (m *metered) json(at time.Time, fields string) {
	m.t.Helper()
	js, err := jetstream.New(m.NC)
	if err == nil {
		_, err = js.Publish(m.ctx, schemas.EventsSubject("usage", schemas.MonthOf(at.UnixNano()), m.rnd.IntN(2)), []byte(`{"type":"bytes","provider":"p",`+fields+`}`))
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// writeAll has twenty writers send what is theirs, and one the bill; in the second turn each sends what another did.
func (m *metered) writeAll(turn int) error {
	const writers = 20
	all := writerDiffs(m.writers)
	var g errgroup.Group
	send := func(seed int, events []schemas.Event) {
		order := rand.New(rand.NewPCG(uint64(seed), uint64(turn))).Perm(len(events))
		g.Go(func() error {
			p, err := producer.Connect(m.ctx, m.natsURL, producer.Config{Topic: "usage", Policy: producer.Block})
			if err != nil {
				return err
			}
			for _, i := range order {
				if err := p.Submit(m.ctx, events[i], nil); err != nil {
					return err
				}
			}
			return p.Close(m.ctx)
		})
	}
	for w := range writers {
		var events []schemas.Event
		for i := (w + turn) % writers; i < len(all); i += writers {
			events = append(events, all[i].Event())
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
