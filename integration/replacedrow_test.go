package integration

import (
	"fmt"
	"testing"
	"time"
)

// A row in another's place is named and left alone; once a person deleted it, repair brings
// the missing one back.
func TestRepairAfterReplacedRow(t *testing.T) {
	t.Parallel()
	e := startDozens(t)
	e.router()
	e.sink()
	e.dozens(e.producer("app"), 40)
	e.verify(40)
	const other = "00000000-0000-7000-8000-000000000001"
	e.replaceRow("app", "message = '7'", fmt.Sprintf("toUUID('%s') AS id", other))
	e.named("1 of their events are missing")
	e.exec("DELETE FROM %s WHERE id = '%s'"+force, e.table("app"), other)
	eventually(t, time.Minute, func() error {
		plan := e.plan()
		e.carryOut(plan)
		rep, err := e.proof("")
		if err == nil && (!rep.OK() || rep.Stored != 40) {
			err = fmt.Errorf("after repair: %v", rep.Problems)
		}
		return err
	})
	if n := e.count("SELECT uniqExact(message) FROM %s", e.table("app")); n != 40 {
		t.Errorf("%d messages, want 40", n)
	}
}
