package retention

import (
	"testing"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// What is declared to be kept while a round is at it stays: a round goes by the topic as it is when events go, not as it was
// when the round began.
func TestDeclaredAgainMeanwhile(t *testing.T) {
	t.Parallel()
	fields := schemas.Anonymise{AfterDays: 7, Fields: []string{"level", "user_id"}}
	for name, c := range map[string]struct {
		point   string
		keep    int
		named   schemas.Anonymise
		days    int // as declared again
		instead schemas.Anonymise
		cleared string // a field that the next round clears
	}{
		"kept longer":              {point: "janitor.derived", keep: 30, days: 90},
		"kept for good":            {point: "janitor.before-mark", keep: 30},
		"anonymised in place":      {point: "janitor.before-mark", keep: 30, instead: schemas.Anonymise{AfterDays: 7, Fields: []string{"level"}}, cleared: "level"},
		"nothing is cleared":       {point: "janitor.before-clear", named: fields},
		"cleared later":            {point: "janitor.before-clear", named: fields, instead: schemas.Anonymise{AfterDays: 60, Fields: fields.Fields}},
		"a field less is cleared":  {point: "janitor.before-clear", named: fields, instead: schemas.Anonymise{AfterDays: 7, Fields: []string{"level"}}, cleared: "level"},
		"another field is cleared": {point: "janitor.before-clear", named: schemas.Anonymise{AfterDays: 7, Fields: []string{"user_id"}}, instead: schemas.Anonymise{AfterDays: 7, Fields: []string{"level"}}, cleared: "level"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.keeps(c.keep, c.named)
			s, _ := r.closed(2)
			named, due := s.Due(&r.Topic)
			if due.IsZero() {
				due = named
			}
			again := func(cfg *Config) {
				cfg.Crash = func(point string) {
					if point == c.point {
						r.keeps(c.days, c.instead)
					}
				}
			}
			r.retain(due.Add(1), "", again)
			r.whole(s)
			if r.Topic.KeepDays != c.days || len(r.Topic.Anonymise.Fields) != len(c.instead.Fields) {
				t.Fatalf("it did not come by %s", c.point)
			}
			r.retain(due.Add(2), "", nil)
			if e := r.entry(s); c.cleared == "" {
				r.whole(s)
			} else if len(e.Anonymised) != 1 || e.Anonymised[0] != c.cleared || r.with("user_id") != 20 {
				t.Errorf("%d events have a user, the entry is %+v", r.with("user_id"), e)
			}
		})
	}
}

// with counts the events that have a field.
func (r *rig) with(field string) (n uint64) {
	r.T.Helper()
	q := "SELECT countIf(" + field + " != '') FROM " + sql.QuotedTable(r.Servers.Database, "app") + " SETTINGS apply_patch_parts = 0"
	if err := r.DB.Conn().QueryRow(r.T.Context(), q).Scan(&n); err != nil {
		r.T.Fatal(err)
	}
	return n
}

// whole checks that nothing was taken of a shard, and that nothing holds erasures up.
func (r *rig) whole(s registry.Shard) {
	r.T.Helper()
	record, err := r.Registry.ErasureRecord(r.T.Context(), s.Ref())
	if err != nil || !record.ClearingAt.IsZero() {
		r.T.Errorf("the erasure record is %+v (%v)", record, err)
	}
	if e := r.entry(s); e.Status != registry.Closed || len(e.Anonymised) != 0 || r.with("user_id") != 20 || len(r.inStream(s)) != 2 {
		r.T.Errorf("%d events have a user, SHARDS has %d messages, the entry is %+v", r.with("user_id"), len(r.inStream(s)), e)
	}
}
