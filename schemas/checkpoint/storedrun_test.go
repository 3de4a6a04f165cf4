package checkpoint

import (
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"pgregory.net/rapid"
)

// Whatever is settled is found, and nothing else: not its neighbours, not a younger
// message under its sequence, and nothing that the checkpoint passed.
func TestStoredRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var cp Checkpoint
		want := map[uint64]int{}
		joins, seq := false, uint64(0)
		for range rapid.IntRange(0, 60).Draw(rt, "messages") {
			seq += rapid.Uint64Range(1, 4).Draw(rt, "others between")
			switch n := rapid.IntRange(-1, 2).Draw(rt, "frames"); n {
			case -1: // to be routed
				joins = false
			default:
				if !cp.NoteStored(schemas.Source{Seq: seq, Stored: int64(seq) * 10}, n, joins) {
					rt.Fatal("too many")
				}
				want[seq], joins = n, n == 0
			}
		}
		cp.Source = rapid.Uint64Range(0, seq).Draw(rt, "passed")
		cp.Pass()
		for s, n := range want {
			switch got := cp.StoredFrames(schemas.Source{Seq: s, Stored: int64(s) * 10}, 5); {
			case s <= cp.Source && n > 0 && got != 0:
				rt.Fatalf("message %d is still settled behind %d", s, cp.Source)
			case s > cp.Source && n == 0 && got != 5, s > cp.Source && n > 0 && got != n:
				rt.Fatalf("message %d: %d frames are settled, want %d", s, got, n)
			}
			if got := cp.StoredFrames(schemas.Source{Seq: s, Stored: int64(seq)*10 + 1}, 5); got != 0 {
				rt.Fatalf("a younger message %d is settled", s)
			}
		}
	})
	cp := Checkpoint{StoredRun: []StoredRun{{From: 5, To: 5, Stored: 50}, {From: 7, To: 9, Stored: 90}}}
	for _, seq := range []uint64{4, 6, 10} {
		if got := cp.StoredFrames(schemas.Source{Seq: seq, Stored: 1}, 3); got != 0 {
			t.Errorf("message %d is settled", seq)
		}
	}
}
