package main

import (
	"context"
	"sync/atomic"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"
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

// supervised tells systemd, until the function it returns is called, that this process still runs. Of the embedded NATS a watch of
// its own says when it hangs, and ends the process.
func supervised(log zerolog.Logger) (stop func()) {
	every, err := systemd.SdWatchdogEnabled(false)
	if err != nil || every <= 0 {
		if err != nil {
			log.Warn().Err(err).Msg("the watchdog of systemd (WATCHDOG_USEC) is off")
		}
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		t := time.NewTicker(max(every/3, time.Millisecond))
		defer t.Stop()
		for {
			tell(log, systemd.SdNotifyWatchdog)
			select {
			case <-t.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return cancel
}
