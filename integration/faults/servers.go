package faults

import (
	"context"
	"net/url"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
)

// playNATS is a NATS server that syncs before it acknowledges.
func playNATS(ctx context.Context, spec Spec) error {
	n, err := embedded.NewNATS(embedded.NATSConfig{
		Dir: spec.Dir, Port: spec.Port, MaxStoreBytes: spec.StoreBytes, MinFreeBytes: spec.FreeBytes,
		CheckInterval: 100 * time.Millisecond,
		Log:           func(level embedded.Level, part, text string) { note("%s %s: %s", level, part, text) },
	})
	if err != nil {
		return err
	}
	go func() {
		if n.WaitReady(ctx) == nil {
			say("ready")
		}
	}()
	return n.Run(ctx)
}

// playEngine is a ClickHouse, as `almanac up` runs it. It reports the engine's own process, to be stopped and killed.
func playEngine(ctx context.Context, spec Spec) error {
	found, err := embedded.Find(ctx, "", nil)
	if err != nil {
		return err
	}
	e, err := embedded.NewClickHouse(embedded.ClickHouseConfig{
		Engine: found, Dir: spec.Dir, TCPPort: spec.Port, HTTPPort: spec.HTTPPort,
		Log: func(level embedded.Level, part, text string) { note("%s %s: %s", level, part, text) },
	})
	if err != nil {
		return err
	}
	go func() {
		if e.WaitReady(ctx) != nil {
			return
		}
		u, err := url.Parse(e.HTTPURL())
		if err != nil {
			note("%v", err)
			return
		}
		u.User, u.Path = url.UserPassword(e.User(), e.Password()), "/"+e.Database()
		say("dsn %s", u)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for pid := 0; ; <-tick.C {
			if now := e.PID(); now != pid && now != 0 {
				say("pid %d", now)
				if pid == 0 {
					say("ready")
				}
				pid = now
			}
		}
	}()
	return e.Run(ctx)
}
