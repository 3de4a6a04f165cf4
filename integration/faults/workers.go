package faults

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/sinks"
)

// join connects to NATS and its registry, however long they take to come.
func join(ctx context.Context, spec Spec) (*nats.Conn, *registry.Registry, error) {
	nc, err := dial(ctx, spec)
	if err != nil {
		return nil, nil, err
	}
	var reg *registry.Registry
	err = patiently(ctx, func(ctx context.Context) (err error) { reg, err = registry.Open(ctx, nc); return err })
	return nc, reg, err
}

// patiently tries until it works; each attempt has two seconds.
func patiently(ctx context.Context, ask func(context.Context) error) error {
	return until(ctx, time.Hour, 50*time.Millisecond, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return ask(ctx)
	})
}

// crasher is the CrashFunc of a spec: SIGKILL to oneself at the n-th hit of the named point.
func crasher(spec Spec) func(string) {
	if spec.CrashAt == "" {
		return nil
	}
	var mu sync.Mutex
	left := spec.CrashHit
	return func(point string) {
		if point != spec.CrashAt {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if left--; left > 0 {
			return
		}
		say("crashed")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // it is on its way
	}
}

func playRouter(ctx context.Context, spec Spec) error {
	nc, reg, err := join(ctx, spec)
	if err != nil {
		return err
	}
	var r *router.Router
	err = patiently(ctx, func(ctx context.Context) (err error) {
		r, err = router.New(ctx, nc, router.Config{
			Registry: reg, Discover: 500 * time.Millisecond, Crash: crasher(spec),
			Hooks: router.Hooks{
				Fault:   func(topic, lane string, err error) { note("%s/%s: %v", topic, lane, err) },
				Rotated: func(s registry.Shard, reason string) { say("rotated"); note("rotated %s: %s", s.Name(), reason) },
			},
		})
		return err
	})
	if err != nil {
		return err
	}
	say("ready")
	return r.Run(ctx)
}

// clockOf is the janitor's clock where the spec wants another than its own.
func clockOf(spec Spec) func() time.Time {
	if spec.Ahead == 0 {
		return nil
	}
	return func() time.Time { return time.Now().Add(spec.Ahead) }
}

// joinBoth is join with ClickHouse.
func joinBoth(ctx context.Context, spec Spec) (*nats.Conn, *registry.Registry, *tables.DB, error) {
	nc, reg, err := join(ctx, spec)
	if err != nil {
		return nil, nil, nil, err
	}
	db, err := tables.Open(spec.ClickHouse)
	return nc, reg, db, err
}

func playSink(ctx context.Context, spec Spec) error {
	nc, reg, db, err := joinBoth(ctx, spec)
	if err != nil {
		return err
	}
	fault := func(ref schemas.ShardRef, err error) { note("%s: %v", ref, err) }
	var s *sinks.Sinks
	err = patiently(ctx, func(ctx context.Context) (err error) {
		s, err = sinks.New(ctx, nc, sinks.Config{
			Registry: reg, DB: db, Crash: crasher(spec),
			Linger: spec.Linger, Housekeeping: spec.Housekeeping, BatchRows: spec.BatchRows, InsertTimeout: spec.InsertTimeout,
			Hooks: sinks.Hooks{
				Fault: fault,
				Burnt: func(ref schemas.ShardRef, head uint64, attempt int) {
					say("burnt")
					note("%s: token of head %d burnt, attempt %d", ref, head, attempt)
				},
				Closed: func(schemas.ShardRef, uint64) { say("closed") },
			},
		})
		return err
	})
	if err != nil {
		return err
	}
	var j *retention.Janitor
	err = patiently(ctx, func(ctx context.Context) (err error) {
		j, err = retention.New(ctx, nc, retention.Config{
			Registry: reg, DB: db, Crash: crasher(spec), Owns: func() bool { return s.Owns("janitor") },
			Every: spec.Housekeeping, ReplayWindow: spec.Keep, KeepTime: spec.Keep, Hooks: retention.Hooks{Fault: fault}, Now: clockOf(spec),
		})
		return err
	})
	if err != nil {
		return err
	}
	say("ready")
	go func() { _ = j.Run(ctx) }()
	return s.Run(ctx)
}
