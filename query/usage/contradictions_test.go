package usage

import (
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Copies that say something else than the diff that counts are named, before they are examined
// and after, with once_within too; copies that say the same are not.
func TestContradictingCopies(t *testing.T) {
	t.Parallel()
	for name, topic := range map[string]schemas.Topic{
		"once":              {Name: "usage", Kind: kinds.Meter},
		"once within a day": {Name: "usage", Kind: kinds.Meter, OnceWithin: 24 * 3600e9},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRigOf(t, topic)
			d := func(cause, customer string, delta int64, when string, shard uint64) row {
				return row{meter: "bytes", provider: "p", space: "s1", cause: cause, customer: customer, delta: delta, ms: at(t, when).UnixMilli(), shard: shard}
			}
			rows := []row{
				d("same", "a", 5, "2026-02-01T10:00:00Z", 0), d("same", "a", 5, "2026-02-01T10:01:00Z", 1), // a repeat
				d("delta", "a", 5, "2026-02-01T10:00:00Z", 0), d("delta", "a", 6, "2026-02-01T11:00:00Z", 1),
				d("customer", "a", 5, "2026-02-02T10:00:00Z", 0), d("customer", "b", 5, "2026-02-02T10:00:01Z", 0),
				d("later", "a", 1, "2026-03-05T10:00:00Z", 0), d("later", "a", 2, "2026-03-05T10:00:01Z", 0),
			}
			in(&r.Topic, rows)
			for _, w := range rows {
				r.insert(w)
			}
			february := Request{Topic: "usage", From: at(t, "2026-02-01T00:00:00Z"), To: at(t, "2026-03-01T00:00:00Z")}
			check := func(when string) {
				t.Helper()
				for what, c := range map[string]struct {
					change func(*Request)
					want   map[string][2]int64 // by cause: the deltas
				}{
					"all":            {func(*Request) {}, map[string][2]int64{"delta": {5, 6}, "customer": {5, 5}}},
					"a space":        {func(q *Request) { q.Space = "s1" }, map[string][2]int64{"delta": {5, 6}, "customer": {5, 5}}},
					"another space":  {func(q *Request) { q.Space = "s2" }, nil},
					"a customer":     {func(q *Request) { q.Customer = "b" }, map[string][2]int64{"customer": {5, 5}}},
					"another month":  {func(q *Request) { q.From, q.To = q.To, q.To.AddDate(0, 1, 0) }, map[string][2]int64{"later": {1, 2}}},
					"a month before": {func(q *Request) { q.From, q.To = q.From.AddDate(0, -1, 0), q.From }, nil},
				} {
					req := february
					c.change(&req)
					found, err := r.read.Contradictions(t.Context(), req)
					if err != nil {
						t.Fatalf("%s, %s: %v", when, what, err)
					}
					if found == nil {
						found = &Contradictions{}
					}
					// With one bill that has copies, which is when a door asks.
					if n, err := r.read.Contradict(t.Context(), req, []Bill{{Causes: 1, Repeats: 1}}); err != nil || n != found.Count {
						t.Errorf("%s, %s: %d of a bill, want %d: %v", when, what, n, found.Count, err)
					}
					if int(found.Count) != len(c.want) || len(found.Pairs) != len(c.want) {
						t.Errorf("%s, %s: %+v, want %v", when, what, found, c.want)
						continue
					}
					for _, p := range found.Pairs {
						if want, ok := c.want[p.Counts.Cause]; !ok || p.Copy.Cause != p.Counts.Cause || p.Counts.Delta != want[0] || p.Copy.Delta != want[1] {
							t.Errorf("%s, %s: %+v, want %v", when, what, p, c.want)
						}
					}
				}
				page, err := r.read.Diffs(t.Context(), february, 0, "")
				if err != nil || page.Contradictions == nil || page.Contradictions.Count != 2 {
					t.Errorf("%s: a page of diffs: %+v, %v", when, page, err)
				}
				rep := r.report(Request{From: february.From, To: february.To})
				if n, err := r.read.Contradict(t.Context(), february, rep.Bills); err != nil || n != 2 {
					t.Errorf("%s: a bill with copies: %d contradictions, %v", when, n, err)
				}
			}
			check("not examined")
			r.derive()
			check("examined")
			// What a copy said may be cleared later. It was marked before.
			r.Exec("ALTER TABLE " + sql.QuotedTable(r.DB.Database, "usage") + " UPDATE user_id = '', delta = 5 WHERE 1 SETTINGS mutations_sync = 1")
			ofSpace := february
			ofSpace.Space = "s1"
			if n, err := r.read.Contradict(t.Context(), ofSpace, []Bill{{Causes: 1, Repeats: 1}}); err != nil || n != 2 {
				t.Errorf("cleared: %d contradictions, want 2: %v", n, err)
			}
		})
	}
}
