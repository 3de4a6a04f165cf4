package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/repair"
)

// A row in another's place is named, and repair brings the other back in its place: also
// when it is killed in between.
func TestRepairAfterReplacedRow(t *testing.T) {
	t.Parallel()
	const one = "toUUID('00000000-0000-7000-8000-000000000001') AS id"
	for what, c := range map[string]struct{ which, change, words string }{
		"id":          {"message = '7'", one, "1 of the events are missing"},
		"id and time": {"message = '7'", one + ", ts - INTERVAL 1 MICROSECOND AS ts", "1 of the events are missing"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			e := startDozens(t)
			e.router()
			e.sink()
			e.dozens(e.producer("app"), 40)
			e.verify(40)
			want := e.rowsHash("app")
			e.replaceRow("app", c.which, c.change)
			e.named(c.words)
			if p := e.plan(); !does(p, repair.DropStrange) || !does(p, repair.Insert) {
				t.Errorf("planned: %+v", p.Actions)
			}
			e.killed()
			eventually(t, time.Minute, func() error {
				rep, err := e.proof("")
				if err == nil && (!rep.OK() || rep.Stored != 40) {
					err = fmt.Errorf("after repair: %v", rep.Problems)
				}
				return err
			})
			if got := e.rowsHash("app"); got != want {
				t.Errorf("the rows are %s, were %s", got, want)
			}
			if p := e.plan(); len(p.Actions) > 0 {
				t.Errorf("a plan is left: %+v", p.Actions)
			}
		})
	}
}
