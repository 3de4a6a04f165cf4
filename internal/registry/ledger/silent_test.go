package ledger

import (
	"testing"

	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// An erasure record keeps the youngest messages, each once.
func TestAddSilent(t *testing.T) {
	t.Parallel()
	var tally ErasureRecord
	for seq := uint64(MaxSilent + 10); seq > 0; seq-- {
		tally.AddSilent(checkpoint.Silent{Seq: seq, Stored: int64(seq)}, checkpoint.Silent{Seq: seq, Stored: int64(seq)})
	}
	if n := len(tally.Silent); n != MaxSilent || tally.Silent[0].Seq != 11 || tally.Silent[n-1].Seq != MaxSilent+10 {
		t.Errorf("%d messages, %+v to %+v", n, tally.Silent[0], tally.Silent[n-1])
	}
	if tally.AddSilent(checkpoint.Silent{Seq: 3, Stored: 3}, checkpoint.Silent{Seq: 20, Stored: 20}) {
		t.Error("nothing is new, and the tally changed")
	}
	// The same sequence, given again after a cut.
	if !tally.AddSilent(checkpoint.Silent{Seq: 20, Stored: 2 * MaxSilent}) {
		t.Error("a message that took another's sequence is not noted")
	}
}
