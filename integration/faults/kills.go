package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// recoveryLimit is when a fault counts as not healed: thirty times the promise of ten seconds, so that what fails is
// broken and not slow, also where much else runs.
const recoveryLimit = 5 * time.Minute

// promised is how soon events flow again after kill -9 of any part, at the 99th percentile, on a machine that is not
// overloaded. What takes longer is told with its circumstances; no test fails for it.
const promised = 10 * time.Second

// isSlowest says whether a recovery took longer than promised, and a second longer than any before it: one cause slows
// several parts, and is to be read once.
func (h *Cluster) isSlowest(took time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if took < max(promised, h.slowest+time.Second) {
		return false
	}
	h.slowest = took
	return true
}

// WordsSince are the last lines that routers, sinks and servers wrote since a moment, at most 60 of them.
func (h *Cluster) WordsSince(since time.Time) string {
	var lines []string
	from := since.Format(clockLayout)
	for _, p := range h.Parts() {
		if p.Spec.Role == RoleProducer {
			continue
		}
		for line := range strings.Lines(p.Words()) {
			if line >= from && line < ":" { // a time, and not the words of a crash
				at, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				lines = append(lines, at+" "+p.Spec.Name+": "+rest)
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// Flows waits until every lane's events that were logged after a moment are in ClickHouse, and says how long that took.
func (h *Cluster) Flows(ctx context.Context, since time.Time) (time.Duration, error) {
	err := until(ctx, recoveryLimit, 50*time.Millisecond, func(ctx context.Context) error {
		n, err := h.SQL.Number(ctx, "SELECT uniqExact(user_id) FROM %s WHERE service = '%s' AND ts >= fromUnixTimestamp64Nano(%d)",
			Topic, Service, since.UnixNano())
		if err == nil && n < users {
			err = fmt.Errorf("events of %d users of %d came through", n, users)
		}
		return err
	})
	return time.Since(since), err
}

// writes waits until events of one producer process are in ClickHouse.
func (h *Cluster) writes(ctx context.Context, number uint64) error {
	return until(ctx, recoveryLimit, 50*time.Millisecond, func(ctx context.Context) error {
		n, err := h.SQL.Number(ctx, "SELECT count() > 0 FROM %s WHERE service = '%s' AND intDiv(toUInt64OrZero(message), 4294967296) = %d",
			Topic, Service, number)
		if err == nil && n == 0 {
			err = fmt.Errorf("producer %d wrote nothing yet", number)
		}
		return err
	})
}

// KillOne kills one part of a role by SIGKILL, starts it again at once, waits until events flow again, and notes the time.
func (h *Cluster) KillOne(ctx context.Context, role Role, rnd *rand.Rand, times *Times) error {
	p, slot := h.pick(role, rnd)
	began := time.Now()
	p.Kill()
	var took time.Duration
	var err error
	if role == RoleProducer {
		if err = h.replaceWriter(slot); err != nil {
			return err
		}
		err = h.writes(ctx, h.Writers[slot].Spec.Writer.Number)
		took = time.Since(began)
	} else {
		if err = p.Start(); err == nil {
			took, err = h.Flows(ctx, began)
		}
	}
	if err != nil {
		return fmt.Errorf("after kill -9 of %s: %w\n%s", p.Spec.Name, err, p.Words())
	}
	times.Add("kill -9 "+string(role), took)
	if h.isSlowest(took) {
		h.t.Logf("kill -9 of %s was healed after %s only; what the parts said:\n%s", p.Spec.Name, took.Round(time.Millisecond), h.WordsSince(began))
	}
	return nil
}

// pick is one part of a role, and its place among the producers.
func (h *Cluster) pick(role Role, rnd *rand.Rand) (*Part, int) {
	switch role {
	case RoleNATS:
		return h.NATS, 0
	case RoleEngine:
		return h.Engine, 0
	case RoleRouter:
		return h.Routers[rnd.IntN(len(h.Routers))], 0
	case RoleSink:
		return h.Sinks[rnd.IntN(len(h.Sinks))], 0
	case RoleRollups:
		return h.Rollups[rnd.IntN(len(h.Rollups))], 0
	case RoleTimers:
		return h.Dispatchers[rnd.IntN(len(h.Dispatchers))], 0
	}
	n := rnd.IntN(len(h.Writers))
	return h.Writers[n], n
}
