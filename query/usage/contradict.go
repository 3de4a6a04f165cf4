package usage

import (
	"context"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// maxDiffering bounds the diffs of a space that are all read for whether any contradict: marks say it faster of more.
const maxDiffering = 10_000

// Contradict counts the contradictions among what the bills of a request count, where one
// of them has copies at all. Of a space it first asks one statement whether there can be any.
func (r *Reader) Contradict(ctx context.Context, req Request, bills []Bill) (uint64, error) {
	if !slices.ContainsFunc(bills, func(b Bill) bool { return b.Repeats > 0 }) {
		return 0, nil
	}
	rows := uint64(0)
	for i := range bills {
		rows += bills[i].Causes + bills[i].Repeats
	}
	if req.Space != "" && !req.byTime() && rows <= maxDiffering { // bills by day are of a part of what is read
		if may, err := r.mayDiffer(ctx, req); err != nil || !may {
			return 0, err
		}
	}
	found, err := r.Contradictions(ctx, req)
	if err != nil || found == nil {
		return 0, err
	}
	return found.Count, nil
}

// mayDiffer says whether copies of a space may say something else than the diffs that count.
func (r *Reader) mayDiffer(ctx context.Context, req Request) (may bool, err error) {
	if err := req.check(); err != nil {
		return false, err
	}
	t, err := r.topic(ctx, req.Topic)
	if err != nil {
		return false, err
	}
	s := &statement{t: t, database: r.db.Database, req: &req, params: map[string]string{}}
	differing := sql.UsageDiffering{Table: sql.QuotedTable(s.database, t.Name), Marks: s.derived(schemas.DerivedRepeats), Where: s.selected(false)}
	err = once.Lines(ctx, r.db, differing.SQL(), s.params, nil, func([]string) error {
		may = true
		return nil
	})
	if tables.Classify(err) == tables.Missing { // nothing was examined yet: Contradictions looks itself
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("usage of topic %q: %w", t.Name, err)
	}
	return may, nil
}
