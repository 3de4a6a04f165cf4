package ledger

import (
	"cmp"
	"slices"

	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// MaxSilent bounds the messages that an erasure record names, at some 45 bytes each. A cut of EVENTS takes the youngest, and a
// shard has as many frames as this in an hour.
const MaxSilent = 4096

// AddSilent adds messages of EVENTS whose frames leave SHARDS: should EVENTS lose them with its end, nothing else
// tells that they were routed. It forgets the oldest of too many.
func (t *ErasureRecord) AddSilent(from ...checkpoint.Silent) (changed bool) {
	all := append(slices.Clone(t.Silent), from...)
	slices.SortFunc(all, func(a, b checkpoint.Silent) int {
		return cmp.Or(cmp.Compare(a.Stored, b.Stored), cmp.Compare(a.Seq, b.Seq))
	})
	all = slices.Compact(all)
	all = all[max(0, len(all)-MaxSilent):]
	changed = !slices.Equal(all, t.Silent)
	t.Silent = all
	return changed
}
