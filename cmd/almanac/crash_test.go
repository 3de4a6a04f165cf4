package main

import (
	"strings"
	"syscall"
	"testing"
)

// A process of which a goroutine panics ends in a way that a supervisor starts it again after: not with exit code 2, as Go's own
// way has it, which says that what was typed cannot be. It says why, and writes no core.
func TestPanicIsNoUsageError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"up":      {[]string{"up", "--ports", "auto", "--log-format", "json"}, `"message":"ready"`},
		"gateway": {[]string{"gateway", "--ports", "auto", "--nats", "nats://127.0.0.1:1", "--clickhouse", "http://127.0.0.1:1/almanac"}, "not ready yet"},
		"router":  {[]string{"router", "--nats", "nats://127.0.0.1:1"}, "not ready yet"},
		"sink":    {[]string{"sink", "--nats", "nats://127.0.0.1:1", "--clickhouse", "http://127.0.0.1:1/almanac"}, "not ready yet"},
		"timers":  {[]string{"timers", "run", "--nats", "nats://127.0.0.1:1"}, "not ready yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, panicEnv+"=a part went wrong")
			b.needEngine()
			d := b.background(c.args...)
			d.says(c.says)
			d.stop(syscall.SIGUSR1)
			status, is := d.cmd.ProcessState.Sys().(syscall.WaitStatus)
			if !is || !status.Signaled() || status.Signal() != syscall.SIGABRT {
				t.Errorf("it ended with %v, want SIGABRT", d.cmd.ProcessState)
			}
			contains(t, d.stderr(), "panic: a part went wrong", "goroutine ")
			if name == "up" { // as its supervisor starts it
				b.env = append(b.env, panicEnv+"=")
				again := b.background(c.args...)
				again.says(c.says)
				if code := again.stop(syscall.SIGTERM); code != exitOK || strings.Contains(again.stderr(), "panic") {
					t.Errorf("it started again and ended with %d: %s", code, again.stderr())
				}
			}
		})
	}
}
