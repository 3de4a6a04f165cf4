package ledger

import (
	"testing"

	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// An erasure record keeps the youngest messages, each once.
func TestAddSilent(t *testing.T) {
	t.Parallel()
	var record ErasureRecord
	for seq := uint64(MaxSilent + 10); seq > 0; seq-- {
		record.AddSilent(checkpoint.Silent{Seq: seq, Stored: int64(seq)}, checkpoint.Silent{Seq: seq, Stored: int64(seq)})
	}
	if n := len(record.Silent); n != MaxSilent || record.Silent[0].Seq != 11 || record.Silent[n-1].Seq != MaxSilent+10 {
		t.Errorf("%d messages, %+v to %+v", n, record.Silent[0], record.Silent[n-1])
	}
	if record.AddSilent(checkpoint.Silent{Seq: 3, Stored: 3}, checkpoint.Silent{Seq: 20, Stored: 20}) {
		t.Error("nothing is new, and the record changed")
	}
	// The same sequence, given again after a cut.
	if !record.AddSilent(checkpoint.Silent{Seq: 20, Stored: 2 * MaxSilent}) {
		t.Error("a message that took another's sequence is not noted")
	}
}
