package faults

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/schemas/timer"
)

// TestTimerAlone prints what a timer that is due alone costs NATS and its dispatcher in CPU, beyond what both take
// while nothing is due: ALMANAC_TIMERS_ALONE timers, 100 ms apart. Routers and sinks are away.
func TestTimerAlone(t *testing.T) {
	n := number("ALMANAC_TIMERS_ALONE", 0)
	if n == 0 {
		t.Skip("set ALMANAC_TIMERS_ALONE=200")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	h, _, all := ofTimers(ctx, t, Plan{Dispatchers: 1}, func(g *timer.Group) { g.Slots = 16 })
	r := receive(ctx, t)
	pids := map[Role]int{}
	for _, p := range h.Parts() {
		switch p.Spec.Role {
		case RoleTimers, RoleNATS:
			pids[p.Spec.Role] = p.current().cmd.Process.Pid
		case RoleRouter, RoleSink:
			p.Kill()
		}
	}
	const apart = 100 * time.Millisecond
	span := time.Duration(n) * apart
	create(ctx, t, all, r.address, "warm", 20, func(int) time.Time { return time.Now() })
	start := time.Now().Add(span + 10*time.Second)
	create(ctx, t, all, r.address, "alone", n, func(i int) time.Time { return start.Add(time.Duration(i) * apart) })
	if err := backoff.Sleep(ctx, time.Until(start)-span-apart); err != nil {
		t.Fatal(err)
	}
	used := func() (s struct{ nats, dispatcher time.Duration }) {
		s.nats, s.dispatcher = cpuOf(t, pids[RoleNATS]), cpuOf(t, pids[RoleTimers])
		return s
	}
	before := used()
	if err := backoff.Sleep(ctx, time.Until(start)-apart/2); err != nil {
		t.Fatal(err)
	}
	idle := used()
	if err := backoff.Sleep(ctx, span); err != nil {
		t.Fatal(err)
	}
	err := until(ctx, recoveryLimit, 10*time.Millisecond, func(context.Context) error {
		if got := r.count(); got < n+20 {
			return fmt.Errorf("%d of %d were called", got, n+20)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	busy := used()
	each := func(before, idle, busy time.Duration) string {
		return fmt.Sprintf("%.2f ms each (idle %.1f ms/s)", float64(busy-idle-(idle-before))/float64(time.Millisecond)/float64(n), float64(idle-before)/float64(time.Millisecond)/span.Seconds())
	}
	t.Logf("%d timers, %s apart: NATS %s; dispatcher %s", n, apart, each(before.nats, idle.nats, busy.nats), each(before.dispatcher, idle.dispatcher, busy.dispatcher))
}

// cpuOf reads the CPU time of a process, in ticks of 10 ms.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	sum := 0
	for _, f := range fields[11:13] {
		ticks, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		sum += ticks
	}
	return time.Duration(sum) * 10 * time.Millisecond
}
