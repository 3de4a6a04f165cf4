package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// Fault is one kind of trouble: it is made, lasts, and is healed.
type Fault struct {
	Name string
	Make func(context.Context, *Cluster, *rand.Rand) error
	// FromStart: it is over at once, and what it takes to recover counts from its beginning.
	FromStart bool
}

// Mix is every fault that may come at any time in one Cluster, in no order.
func Mix() []Fault {
	var all []Fault
	add := func(name string, do func(context.Context, *Cluster, *rand.Rand) error) {
		all = append(all, Fault{Name: name, Make: do, FromStart: strings.HasPrefix(name, "kill -9")})
	}
	for _, role := range Roles {
		add("kill -9 "+string(role), func(_ context.Context, h *Cluster, rnd *rand.Rand) error { return h.replace(role, rnd) })
		add("SIGSTOP "+string(role), func(ctx context.Context, h *Cluster, rnd *rand.Rand) error {
			p, _ := h.pick(role, rnd)
			p.Stop()
			defer p.Continue()
			return backoff.Sleep(ctx, Between(rnd, time.Second, 9*time.Second))
		})
	}
	add("kill -9 of everything", func(_ context.Context, h *Cluster, rnd *rand.Rand) error {
		for _, p := range h.Parts() {
			p.Kill()
		}
		for _, p := range h.Parts() {
			if p.Spec.Role != RoleProducer {
				if err := p.Start(); err != nil {
					return err
				}
			}
		}
		for i := range h.Writers {
			if err := h.replaceWriter(i); err != nil {
				return err
			}
		}
		return nil
	})
	for _, c := range points {
		add("crash at "+c.point, func(ctx context.Context, h *Cluster, rnd *rand.Rand) error {
			return h.crash(ctx, c.role, c.point, 1+rnd.IntN(c.hits), rnd)
		})
	}
	for i, link := range []string{"producers-NATS", "routers-NATS", "sinks-NATS", "sinks-ClickHouse"} {
		for _, f := range linkFaults {
			add(link+": "+f.name, func(ctx context.Context, h *Cluster, rnd *rand.Rand) error {
				l := h.Links()[i]
				f.do(l, rnd)
				defer l.Heal()
				return backoff.Sleep(ctx, f.last)
			})
		}
	}
	add("engine at a tenth", func(ctx context.Context, h *Cluster, rnd *rand.Rand) error {
		return h.throttle(ctx, Between(rnd, 4*time.Second, 12*time.Second))
	})
	add("strangers at the engine's ports", func(ctx context.Context, h *Cluster, rnd *rand.Rand) error {
		// More statements than the engine runs at once (100), and a third of its connections (2,048).
		return h.strangers(ctx, 110, 700, Between(rnd, 3*time.Second, 8*time.Second))
	})
	add("EVENTS cut", func(ctx context.Context, h *Cluster, rnd *rand.Rand) error { return h.cutEvents(ctx, rnd) })
	add("key of a shard lost", func(ctx context.Context, h *Cluster, rnd *rand.Rand) error { return h.loseKey(ctx, rnd) })
	return all
}

// points are the named instants at which a part can be made to kill itself, at one of its first hits.
var points = []struct {
	role  Role
	point string
	hits  int
}{
	{RoleRouter, "router.before-batch", 30}, // between the registry's update and the batch
	{RoleRouter, "router.after-batch", 30},
	{RoleRouter, "router.after-rotate", 3}, // between the new shard and its first frame
	{RoleRouter, "router.before-seal", 3},  // the full shard is left, and not yet sealed
	{RoleRouter, "router.after-seal", 3},
	{RoleSink, "sink.before-insert", 10},
	{RoleSink, "sink.after-insert", 10}, // between the answer and the reading of the head
	{RoleSink, "sink.before-close", 3},
}

// linkFaults are what may happen to a link, and how long it lasts.
var linkFaults = []struct {
	name string
	do   func(*Proxy, *rand.Rand)
	last time.Duration
}{
	{"reset", func(p *Proxy, _ *rand.Rand) { p.Reset() }, 0},
	{"cut", func(p *Proxy, _ *rand.Rand) { p.Cut() }, 700 * time.Millisecond},
	{"cut mid-message", func(p *Proxy, rnd *rand.Rand) { p.CutAfter(1+rnd.IntN(60_000), nil) }, 400 * time.Millisecond},
	{"answers a second late", func(p *Proxy, _ *rand.Rand) { p.Late(1100 * time.Millisecond) }, 4 * time.Second},
	{"truncated answer", func(p *Proxy, rnd *rand.Rand) { p.Truncate(1 + rnd.IntN(20_000)) }, 400 * time.Millisecond},
	{"blackhole", func(p *Proxy, _ *rand.Rand) { p.Blackhole() }, 3 * time.Second},
	{"half-open", func(p *Proxy, _ *rand.Rand) { p.HalfOpen() }, 0},
	{"500 ms and 10 KB/s", func(p *Proxy, _ *rand.Rand) { p.Slow(500*time.Millisecond, 10<<10) }, 4 * time.Second},
	{"5 ms and 300 KB/s", func(p *Proxy, _ *rand.Rand) { p.Slow(5*time.Millisecond, 300<<10) }, 3 * time.Second},
}

// replace kills a part and starts it again.
func (h *Cluster) replace(role Role, rnd *rand.Rand) error {
	p, slot := h.pick(role, rnd)
	p.Kill()
	if role == RoleProducer {
		return h.replaceWriter(slot)
	}
	return p.Start()
}

func (h *Cluster) replaceWriter(slot int) error {
	old := h.Writers[slot]
	next, err := h.heir(old)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Writers[slot] = next
	h.Gone = append(h.Gone, old)
	return err
}

// CrashOn starts a part again and again, each time to kill itself at the next of its role's points, as often as rounds says.
func (h *Cluster) CrashOn(ctx context.Context, p *Part, rounds int, rnd *rand.Rand) error {
	p.Kill()
	for range rounds {
		for _, c := range points {
			if c.role != p.Spec.Role {
				continue
			}
			if err := h.crashNow(ctx, p, c.point, 1+rnd.IntN(c.hits)); err != nil {
				return err
			}
		}
	}
	return p.Start()
}

// crash starts a part that will kill itself at the hit-th time it comes to a point, and starts it again when it did.
func (h *Cluster) crash(ctx context.Context, role Role, point string, hit int, rnd *rand.Rand) error {
	p, _ := h.pick(role, rnd)
	p.Kill()
	if err := h.crashNow(ctx, p, point, hit); err != nil {
		return err
	}
	return p.Start()
}

// crashNow starts a dead part and returns when it has killed itself.
func (h *Cluster) crashNow(ctx context.Context, p *Part, point string, hit int) error {
	before := p.Said("crashed")
	p.Spec.CrashAt, p.Spec.CrashHit = point, hit
	if err := p.Start(); err != nil {
		return err
	}
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case <-p.Gone():
	case <-timer.C: // of two routers it may have no lane, or of two sinks no shard
		p.Kill()
	case <-ctx.Done():
		return ctx.Err()
	}
	p.Spec.CrashAt = ""
	if p.Said("crashed") == before && h.alone(p.Spec.Role) {
		return fmt.Errorf("faults: %s did not come to %s for the %d. time", p.Spec.Name, point, hit)
	}
	return nil
}

// alone reports whether a role has one process, which must then come to each of its points.
func (h *Cluster) alone(role Role) bool {
	return role == RoleRouter && len(h.Routers) == 1 || role == RoleSink && len(h.Sinks) == 1
}
