package main

import (
	"context"
	"sync/atomic"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/backoff"
)

// tell says to systemd how this process is, where that started it and asked (NOTIFY_SOCKET).
func tell(log zerolog.Logger, state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		log.Warn().Err(err).Msg("systemd (NOTIFY_SOCKET) does not hear how this process is")
	}
}

// serving reports whether this process said that it is ready, and not yet that it stops.
var serving atomic.Bool

func tellReady(log zerolog.Logger) {
	serving.Store(true)
	tell(log, systemd.SdNotifyReady)
}

func tellStopping(log zerolog.Logger) {
	serving.Store(false)
	tell(log, systemd.SdNotifyStopping)
}

// tellReloading says that settings are read again, and after reload that they were.
func tellReloading(log zerolog.Logger, reload func()) {
	if serving.Load() {
		tell(log, systemd.SdNotifyReloading+"\n"+systemd.SdNotifyMonotonicUsec())
	}
	reload()
	if serving.Load() {
		tell(log, systemd.SdNotifyReady)
	}
}

// supervised tells systemd, until the function it returns is called, that this process still runs: each time that probe returned, whatever
// it found. A process is not started again for servers that are away, but where it can no longer look at them. Of the embedded NATS a
// watch of its own says when it hangs, and ends the process.
func supervised(log zerolog.Logger, probe func(context.Context)) (stop func()) {
	every, err := systemd.SdWatchdogEnabled(false)
	if err != nil || every <= 0 {
		if err != nil {
			log.Warn().Err(err).Msg("the watchdog of systemd (WATCHDOG_USEC) is off")
		}
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go watch(ctx, max(every/3, time.Millisecond), probe, func() { tell(log, systemd.SdNotifyWatchdog) })
	return cancel
}

// watch calls tick each time that probe returned, and then pauses, until ctx ends.
func watch(ctx context.Context, pause time.Duration, probe func(context.Context), tick func()) {
	for ctx.Err() == nil {
		probe(ctx)
		tick()
		_ = backoff.Sleep(ctx, pause)
	}
}
