package faults

import (
	"testing"
	"time"
)

// One part at a time, all else well: how long until new events of every lane are in ClickHouse again.
func TestRecovery(t *testing.T) {
	t.Parallel()
	_, rnd := Seed(t)
	h := Build(t, Plan{Writers: []Writer{{Rate: 2000}, {Rate: 2000}}})
	h.StartWriters()
	if _, err := h.Flows(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	var times Times
	for range 5 * Rounds(t) {
		for _, role := range Roles {
			if err := h.KillOne(t.Context(), role, rnd, &times); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.Prove(time.Minute)
	t.Logf("recovery:\n%s", &times)
}
