package producer

import (
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// A producer makes no frame that a router refuses: of a topic that has events once, an id that the caller gives again
// and again comes schemas.MaxSameIDs times in a frame, logged, in a batch and in one with a key. Elsewhere, and where ids differ, frames are
// as large as they were.
func TestOneIDManyTimes(t *testing.T) {
	t.Parallel()
	const n = 100
	at := time.Date(2026, 8, 3, 4, 5, 6, 0, time.UTC)
	log := schemas.NewTopic("usage", schemas.NewTopicOf(kinds.Meter, "usage").Fields...)
	same := func(int) schemas.ID { return schemas.DerivedID(1, 2, 3) }
	for name, c := range map[string]struct {
		topic schemas.Topic
		id    func(i int) schemas.ID
		least int // frames
	}{
		"one id":                      {schemas.NewTopicOf(kinds.Meter, "usage"), same, (n + schemas.MaxSameIDs - 1) / schemas.MaxSameIDs},
		"ids that differ":             {schemas.NewTopicOf(kinds.Meter, "usage"), func(i int) schemas.ID { return schemas.DerivedID(1, uint64(i), 3) }, 1},
		"made ids":                    {schemas.NewTopicOf(kinds.Meter, "usage"), func(int) schemas.ID { return schemas.ID{} }, 1},
		"one id, without an identity": {log, same, 1},
	} {
		event := func(i int) Event {
			return Event{ID: c.id(i), Time: at, Type: "bytes", Attrs: []Attr{schemas.String("space", "s"), schemas.String("cause", "c"), schemas.Int64("delta", 1), schemas.Int64("n", int64(i))}}
		}
		batch := func(key string) func(t *testing.T, p *Producer) {
			return func(t *testing.T, p *Producer) {
				b := p.NewBatch(key)
				for i := range n {
					if err := b.Add(event(i)); err != nil {
						t.Fatal(err)
					}
				}
				if err := b.Submit(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := b.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for way, send := range map[string]func(t *testing.T, p *Producer){
			"logged": func(t *testing.T, p *Producer) {
				for i := range n {
					p.Log(event(i))
				}
				if err := p.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			"a batch": batch(""), "a batch with a key": batch("k"),
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				e := newEnv(t, c.topic)
				p := e.connect(Config{Topic: "usage", Linger: time.Minute})
				send(t, p)
				frames := e.frames(&c.topic) // which opens and checks each as a router does
				total := 0
				for _, f := range frames {
					total += len(f.events)
				}
				if total != n || len(frames) < c.least || c.least == 1 && len(frames) != 1 {
					t.Errorf("%d events in %d frames, want %d in at least %d", total, len(frames), n, c.least)
				}
				got := numbers(e.events(&c.topic))
				if len(slices.Compact(got)) != n {
					t.Errorf("%d different events", len(got))
				}
				checkSum(t, p.Stats())
			})
		}
	}
}
