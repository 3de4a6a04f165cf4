package integration

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// publishAt publishes an event of each time, one frame each.
func (e *env) publishAt(p *producer.Producer, times ...time.Time) {
	e.t.Helper()
	for _, at := range times {
		if err := p.Publish(e.t.Context(), producer.Event{Time: at, UserID: "u", Message: at.Format(time.RFC3339)}); err != nil {
			e.t.Fatal(err)
		}
	}
}

// between is how many events a query by time finds.
func (e *env) between(from, to time.Time) int {
	e.t.Helper()
	page, err := answered(func() (*query.Page, error) {
		return e.reader().Query(e.t.Context(), query.Request{Topic: "app", From: from, To: to.Add(1)})
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return len(page.Events)
}

// A router goes by the range that it wrote of its active shard, rounded to minutes. When that
// entry is lost or narrowed and repaired from the events, the router does not write it again:
// what it adds within its range is found by time all the same.
func TestRepairActiveRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(*env, registry.Shard)
	}{
		{"the entry lost", func(e *env, s registry.Shard) { e.purgeKey(schemas.ShardKey("app", s.Month, s.ID)) }},
		{"the range wrong", func(e *env, s registry.Shard) {
			e.edit(s, func(s *registry.Shard) { s.MinTs, s.MaxTs = s.Month.End(), s.Month.Start()-1 })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := running(t, oneLaneTopic())
			p := e.producer("app")
			minute := feb(9, 28)
			first := minute.Add(20 * time.Second)
			e.publishAt(p, first)
			e.stored("app", 1, 30*time.Second)
			c.damage(e, e.shards("app")[0])
			e.repaired(1)
			before, after := minute.Add(time.Second), minute.Add(50*time.Second)
			e.publishAt(p, before, after) // within the minute, as the router knows the range
			e.stored("app", 3, 30*time.Second)
			for _, at := range []time.Time{before, first, after} {
				if n := e.between(at, at); n != 1 {
					t.Errorf("%d events are found of %s, want 1", n, at)
				}
			}
			e.verify(3)
			later := minute.Add(time.Hour) // beyond what the router knows
			e.publishAt(p, later)
			e.stored("app", 4, 30*time.Second)
			if n := e.between(later, later); n != 1 {
				t.Errorf("%d events are found of %s, want 1", n, later)
			}
			e.verify(4)
		})
	}
}
