package faults

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Rows 22 and 25: producers whose clocks pass the end of a month, of a year and of a leap February while parts are
// killed, and one whose clock jumps back and forth by an hour. Row 19: damaged messages between them.
func TestMonths(t *testing.T) {
	t.Parallel()
	_, rnd := Seed(t)
	before := func(y int, m time.Month) int64 {
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC).Add(-6 * time.Second).UnixNano()
	}
	h := Build(t, Plan{Routers: 2, Sinks: 2, Writers: []Writer{
		{Rate: 1500}, {Rate: 700, Step: time.Hour},
		{Rate: 700, From: before(2026, time.October)}, {Rate: 700, From: before(2026, time.January)}, {Rate: 700, From: before(2024, time.March)},
	}})
	h.StartWriters()
	flows(t, h)
	ctx, calm := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.rampage(ctx, rnd, 300*time.Millisecond) }()
	var times Times
	for _, role := range []Role{RoleNATS, RoleEngine, RoleRouter, RoleSink} {
		if err := h.KillOne(t.Context(), role, rnd, &times); err != nil {
			t.Fatal(err)
		}
	}
	months := []int{202609, 202610, 202512, 202601, 202402, 202403}
	await(t, startWait, func(ctx context.Context) error {
		for _, m := range months {
			n, err := h.SQL.Number(ctx, "SELECT count() FROM %s WHERE toYYYYMM(ts) = %d AND month = %d", Topic, m, m)
			if err != nil {
				return err
			}
			if n == 0 {
				return fmt.Errorf("no events of %d", m)
			}
		}
		return nil
	})
	calm()
	<-done
	v := h.Prove(time.Minute)
	n, err := h.SQL.Number(t.Context(), "SELECT count() FROM %s WHERE toYYYYMM(ts) != month", Topic)
	if err != nil || n != 0 {
		t.Errorf("%d events lie in the wrong month (%v)", n, err)
	}
	if v.Damaged == 0 {
		t.Error("nothing was damaged")
	}
}
