package integration

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// EVENTS loses its end, twice. Where a lane goes on, and what is gone under it or under
// the end that was noted, is the same by what stands near the ends of both streams as by
// all of them.
func TestResumeWithin(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.Lanes = 3
	d := startOnDisk(t, topic)
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 1))
	t.Log("seed", seed)
	stored := uint64(0)
	for round := range 2 {
		stopRouter, stopSink := d.router(), d.sink()
		n := 300 + rnd.IntN(150)
		p := d.producer("app", wholeFrames)
		for i := range n {
			if err := p.Publish(t.Context(), producer.Event{Message: fmt.Sprint(round, i), UserID: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		stored += uint64(n)
		d.stored("app", stored, 60*time.Second)
		if round == 0 { // what came again left no trace
			sent := d.messages(schemas.StreamEvents, schemas.SubjectsEvents)
			d.sendAgain(sent[len(sent)-10:])
		}
		d.noted(d.stream(schemas.StreamEvents).LastSeq)
		end, _, err := d.reg.End(t.Context(), schemas.StreamEvents)
		if err != nil {
			t.Fatal(err)
		}
		stopRouter()
		stopSink()
		d.cut(schemas.StreamEvents)
		since := rnd.IntN(50)
		d.both(since, since, fmt.Sprint("since", round))
		stored += 2 * uint64(since)

		js := d.reg.JetStream()
		checkpoints, err := streams.Checkpoints(t.Context(), js, "app")
		if err != nil {
			t.Fatal(err)
		}
		compared := 0
		for lane, cp := range checkpoints {
			filter := schemas.LaneFilter("app", lane)
			why, err := streams.Misfit(t.Context(), js, filter, &cp)
			if err != nil {
				t.Fatal(err)
			}
			if why == "" {
				continue
			}
			whole, err := streams.ResumeWithin(t.Context(), js, filter, &cp, streams.Window{}, d.reg.Taken)
			if err != nil {
				t.Fatal(err)
			}
			for _, span := range []uint64{3, 40, cp.Source * 3 / 4, cp.Source * 9 / 10} {
				near, err := streams.ResumeWithin(t.Context(), js, filter, &cp, streams.Window{Span: span}, d.reg.Taken)
				if err != nil {
					t.Fatal(err)
				}
				near.Cut.Found = whole.Cut.Found
				if !reflect.DeepEqual(near, whole) {
					t.Errorf("round %d, lane %s, from %d messages on: %+v; of all: %+v", round, lane, span, near, whole)
				}
				compared++
			}
		}
		if compared == 0 {
			t.Fatal("no checkpoint was cut off")
		}
		routed := func() (uint64, error) { return 0, nil }
		whole, why, err := streams.EndCutWithin(t.Context(), js, end, streams.Window{}, d.reg.Taken, routed)
		if err != nil || why == "" {
			t.Fatalf("the end that was cut off: %q, %v", why, err)
		}
		for _, span := range []uint64{3, 40, end.Seq * 3 / 4, end.Seq * 9 / 10} {
			near, nearWhy, err := streams.EndCutWithin(t.Context(), js, end, streams.Window{Span: span}, d.reg.Taken, routed)
			if err != nil {
				t.Fatal(err)
			}
			if near.Found = whole.Found; !reflect.DeepEqual(near, whole) || nearWhy != why {
				t.Errorf("round %d, the end, from %d messages on: %+v, %s; of all: %+v, %s", round, span, near, nearWhy, whole, why)
			}
		}
	}
	d.router()
	d.sink()
	d.stored("app", stored, 60*time.Second)
	d.verify(stored)
}
