package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/schemas"
)

// derived compares what is derived from a topic's rows with them: how many are repeats, and
// the shards whose sums do not fit. These are not a problem of the proof: no bill takes such
// sums, and a sink fills them again.
func (v *Verifier) derived(ctx context.Context, t *schemas.Topic, entries []registry.Shard, rep *TopicReport) error {
	if !t.HasOnce() {
		return nil
	}
	d, err := derived.Of(v.db).State(ctx, t)
	if err != nil {
		return err
	}
	gone := map[schemas.ShardRef]bool{}
	for i := range entries {
		gone[entries[i].Ref()] = entries[i].Gone()
	}
	for ref, s := range d.Shards {
		if gone[ref] {
			continue
		}
		rep.Repeats += s.Repeats
		switch {
		case s.Doubted:
			rep.Derived = append(rep.Derived, fmt.Sprintf("%s: it has other rows than when it was looked for repeats; a sink looks again", ref))
		case s.Sums.Pos > 0 && !s.Sums.Exact():
			rep.Derived = append(rep.Derived, fmt.Sprintf("%s: its sums hold %d diffs and %d repeats up to position %d, which its rows do not; a sink fills them again", ref, s.Sums.N, s.Sums.Repeats, s.Sums.Pos))
		case s.Examined < s.Stored.Head:
			rep.Derived = append(rep.Derived, fmt.Sprintf("%s: looked for repeats up to position %d of %d", ref, s.Examined, s.Stored.Head))
		case t.HasSeries() && s.Series < s.Stored.Head:
			rep.Derived = append(rep.Derived, fmt.Sprintf("%s: its series are listed up to position %d of %d", ref, s.Series, s.Stored.Head))
		}
	}
	slices.SortFunc(rep.Derived, cmp.Compare[string])
	return nil
}
