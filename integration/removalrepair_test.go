package integration

import (
	"errors"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/schemas"
)

// TestRepairPlannedBeforeARemoval holds that a repair which stops between its plan and its work brings nothing of a removed topic back.
func TestRepairPlannedBeforeARemoval(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"))
	e.router()
	stop := e.sink()
	e.say(e.producer("app"), 10)
	e.stored("app", 10, time.Minute)
	stop() // it would see that rows are missing, and mend that itself
	e.exec("ALTER TABLE %s DELETE WHERE 1 SETTINGS mutations_sync = 1", e.table("app"))
	plan, r := e.plan(), e.repairer()
	if len(plan.Actions) == 0 {
		t.Fatal("nothing is to be repaired")
	}
	e.remove("app")
	if err := r.Apply(t.Context(), plan, func(*repair.Action, error) {}); !errors.Is(err, schemas.ErrUnknownTopic) {
		t.Errorf("what was planned before: %v", err)
	}
	e.verify(0)
}
