package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/audit"
	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/maintenance/seals"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/trail"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Who acted, and what it was before and after, is cleared in changes that are old, and later the changes
// go. Each makes seals that say so, of the shards that were sealed before.
func TestTrailForgets(t *testing.T) {
	t.Parallel()
	topic := dozensOf(t, kinds.Audit, "trail")
	e := start(t, topic)
	e.router()
	e.sink()
	e.rollups()
	p := e.producer("trail", func(c *producer.Config) { c.Policy = producer.Block })
	w := audit.New(p)
	const changes = 30
	for i := range changes {
		c := audit.Change{Request: fmt.Sprint("r-", i), Scope: "s", Service: "iam", Type: "role", Resource: fmt.Sprint("roles/", i%7), Actor: "u-1",
			Before: map[string]int{"n": i}, After: map[string]int{"n": i + 1}, Time: time.Now().AddDate(0, 0, -40)}
		if err := w.Before(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := w.After(t.Context(), c, audit.Committed); err != nil {
			t.Fatal(err)
		}
	}
	e.finalUsage("trail")
	e.closed("trail", time.Minute)
	kept := e.sealed("")
	if len(kept) == 0 {
		t.Fatal("nothing is sealed")
	}
	tomorrow := time.Now().Add(25 * time.Hour) // a shard is left alone on its first day
	nc := e.connect()
	j, err := retention.New(t.Context(), nc, retention.Config{Registry: e.registry(nc), DB: e.sinkDB, Now: func() time.Time { return tomorrow }})
	if err != nil {
		t.Fatal(err)
	}
	forgets := func(is func(*registry.Shard) bool) {
		t.Helper()
		e.apply(topic)
		eventually(t, time.Minute, func() error {
			if err := j.Round(t.Context()); err != nil {
				return err
			}
			if all := e.shards("trail"); slices.ContainsFunc(all, func(s registry.Shard) bool { return !is(&s) }) {
				return fmt.Errorf("%s", describe(all))
			}
			return nil
		})
	}
	reader, err := query.New(e.connect(), e.reg, e.db)
	if err != nil {
		t.Fatal(err)
	}
	entries := func(r trail.Request) []trail.Entry {
		t.Helper()
		r.Topic, r.Scopes, r.Limit = "trail", []string{"s"}, 1000
		page, err := trail.New(reader).Page(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return page.Entries
	}
	holds := func(when, why string, replaced int) {
		t.Helper()
		e.sealed("")
		reports, err := seals.Check(t.Context(), e.reg, e.db, append([]schemas.Seal(nil), kept...))
		if err != nil || len(reports) != 1 || len(reports[0].Problems) > 0 || len(reports[0].Replaced) != replaced || !strings.Contains(strings.Join(reports[0].Replaced, "\n"), why) {
			t.Errorf("%s: %+v, %v", when, reports, err)
		}
		e.repaired(2 * changes)
	}

	topic.Anonymise = schemas.Anonymise{AfterDays: 7, Fields: []string{"user_id", "before", "after"}}
	forgets(func(s *registry.Shard) bool { return !s.AnonymisedAt.IsZero() })
	if got := entries(trail.Request{Actors: []string{"u-1"}}); len(got) != 0 {
		t.Errorf("%d changes are told of who was cleared", len(got))
	}
	for i := range changes {
		got := entries(trail.Request{RequestID: fmt.Sprint("r-", i)})
		if len(got) != 1 || got[0].State != kinds.StateCommitted || strings.Contains(string(got[0].Before), "n") {
			t.Errorf("of request %d: %+v", i, got)
		}
	}
	holds("anonymised", "the fields [after before user_id] were cleared", len(kept))

	topic.KeepDays = 30
	forgets(func(s *registry.Shard) bool { return s.Status == registry.Dropped })
	if got := entries(trail.Request{RequestID: "r-1"}); len(got) != 0 {
		t.Errorf("what was dropped is told: %+v", got)
	}
	holds("dropped", "retention dropped the shard", 2*len(kept))
}
