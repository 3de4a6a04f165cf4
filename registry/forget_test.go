package registry

import "testing"

// What an erasure noted of a shard whose rows differed from their seal stays known when the
// erasure is forgotten, and when another one is after it.
func TestForgottenKeepsUnsealed(t *testing.T) {
	t.Parallel()
	tally := &Tally{Receipts: map[string]Receipt{"e-1": {Rows: 3, Seal: 4, Unsealed: "d"}, "e-2": {Rows: 1, Seal: 4}}}
	for _, id := range []string{"e-1", "e-2"} {
		if !tally.join([]string{id}) {
			t.Fatal("no receipt of", id)
		}
		if f := tally.Forgotten; f.Seal != 4 || f.Unsealed != "d" {
			t.Errorf("after %s: %+v", id, f)
		}
	}
	if tally.Forgotten.Rows != 4 || len(tally.Receipts) != 0 {
		t.Errorf("%+v", tally)
	}
}
