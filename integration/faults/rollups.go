package faults

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/rollups"
	"github.com/almanac-events/almanac/schemas"
)

// rollupPoints are where rollups of a topic may kill themselves.
func rollupPoints(t *schemas.Topic) []string {
	points := []string{"rollups.before-examine", "rollups.after-examine"}
	if t.HasSums() {
		points = append(points, "rollups.before-drop", "rollups.before-sum", "rollups.after-sum")
	}
	if t.HasSeries() {
		points = append(points, "rollups.before-list", "rollups.after-list")
	}
	return points
}

func playRollups(ctx context.Context, spec Spec) error {
	_, reg, db, err := joinBoth(ctx, spec)
	if err != nil {
		return err
	}
	u, err := rollups.New(rollups.Config{Registry: reg, DB: db, Every: 100 * time.Millisecond, BatchRows: spec.BatchRows, Crash: crasher(spec), Hooks: rollups.Hooks{
		Fault: func(ref schemas.ShardRef, err error) { note("%s: %v", ref, err) },
	}})
	if err != nil {
		return err
	}
	say("ready")
	return u.Run(ctx)
}
