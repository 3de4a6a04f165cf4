package pool

import (
	"fmt"
	"testing"
	"time"
)

// Rates are of the last minute, and what was refused or is not known to be stored counts for none.
func TestUses(t *testing.T) {
	t.Parallel()
	var u uses
	at := time.Unix(1_800_000_000, 0)
	for i := range 120 {
		u.note(&Events{Input: InputLines, Topic: "app", Outcome: Stored, Count: 5}, at.Add(time.Duration(i)*time.Second))
	}
	u.note(&Events{Input: InputLines, Topic: "app", Outcome: Refused, Count: 1000}, at.Add(119*time.Second))
	u.note(&Events{Input: InputLoki, Topic: "app", Outcome: Unknown, Count: 1000}, at)
	u.note(&Events{Input: InputElastic, Topic: "app", Outcome: Taken, Count: 7}, at)
	all := u.list(at.Add(119 * time.Second))
	if len(all) != 2 || all[0].Input != InputElastic || all[0].PerSecond != 0 || all[0].Events != 7 {
		t.Fatalf("%+v", all)
	}
	if one := all[1]; one.Events != 600 || one.PerSecond < 4.9 || one.PerSecond > 5.2 || !one.LastEvent.Equal(at.Add(119*time.Second)) {
		t.Errorf("%+v", one)
	}
	if one := u.list(at.Add(10 * time.Minute))[1]; one.PerSecond != 0 || one.Events != 600 {
		t.Errorf("long after: %+v", one)
	}
	for i := range 2 * maxUses {
		u.note(&Events{Input: InputLines, Topic: fmt.Sprint(i), Outcome: Stored, Count: 1}, at)
	}
	if n := len(u.list(at)); n != maxUses {
		t.Errorf("%d pairs are kept", n)
	}
}
