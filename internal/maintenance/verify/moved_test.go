package verify

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// The headers of frames tell the sum of id times position, from wherever they are held and whatever erasures took.
func TestWeighted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Uint64Range(1, 20).Draw(rt, "frames")
		first := rapid.Uint64Range(1, n).Draw(rt, "first held")
		head := rapid.Uint64Range(first, n).Draw(rt, "head")
		var h held
		var ids, above, total, want uint64
		var gone []ledger.Cut
		for pos := uint64(1); pos <= n; pos++ {
			own := rapid.Uint64().Draw(rt, "ids")
			if total += own; pos <= head {
				ids, want = total, want+max(pos, first)*own
			}
			if pos >= head {
				above += total
			}
			if pos >= first {
				h.add(&schemas.Placed{Pos: pos, ShardIDs: total}, pos)
			}
			if took := rapid.Uint64().Draw(rt, "erased"); rapid.Bool().Draw(rt, "an erasure") {
				gone = append(gone, ledger.Cut{Pos: pos, Rows: 1, IDs: took})
				if pos <= head {
					want -= max(pos, first) * took
				}
			}
		}
		h.add(&schemas.Placed{Pos: h.last, ShardIDs: total}, n+1) // a mark takes the place of the last frame
		if got, known := h.weighted(head, ids, above, gone); !known || got != want {
			rt.Fatalf("%x (known: %v), want %x", got, known, want)
		}
		if _, known := h.weighted(head, ids, above, []ledger.Cut{{From: max(1, head-1), Pos: head, IDs: 1}}); known != (head == first || head == 1) {
			rt.Fatalf("with joined cuts up to %d, of %d: %v", head, first, known)
		}
	})
}
