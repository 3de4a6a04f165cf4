package registry

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
)

// TestAlertTurns holds that groups which are saved at one moment are each asked of with the others, and that groups
// saved together are saved all or none.
func TestAlertTurns(t *testing.T) {
	t.Parallel()
	r, ctx := open(t), timeout(t)
	group := func(name string) AlertRules { return AlertRules{Group: name, Rules: json.RawMessage(`{}`)} }
	names := func() (all []string) {
		live, err := r.AlertRules(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range live {
			all = append(all, live[i].Group)
		}
		slices.Sort(all)
		return all
	}
	errFull := errors.New("there are two already")
	asked := 0
	atMostTwo := func(live []AlertRules) error {
		if asked++; asked == 1 { // between what was read and what is written, another process is faster
			if err := r.SaveAlertRules(ctx, []AlertRules{group("a"), group("b")}, func([]AlertRules) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if len(live) >= 2 {
			return errFull
		}
		return nil
	}
	if err := r.SaveAlertRules(ctx, []AlertRules{group("c"), group("d")}, atMostTwo); !errors.Is(err, errFull) || asked != 2 {
		t.Errorf("asked %d times, then %v", asked, err)
	}
	if got := names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("declared are %q", got)
	}
	if err := r.ForgetAlertRules(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := r.SaveAlertRules(ctx, []AlertRules{group("c")}, atMostTwo); err != nil {
		t.Fatal(err)
	}
	if got := names(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("declared are %q", got)
	}
}
