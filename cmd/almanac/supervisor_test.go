package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
)

// The watchdog hears of a process whose probes return, and no longer of one whose probe does not: systemd starts that again.
func TestWatchdogHearsOfProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		const pause, takes = 10 * time.Second, 2 * time.Second
		hangs := make(chan struct{})
		probes, ticks := 0, 0
		go watch(ctx, pause, func(context.Context) {
			if probes++; probes == 4 {
				<-hangs // and does not look at its context
			}
			<-time.After(takes)
		}, func() { ticks++ })
		for _, step := range []struct {
			name  string
			after time.Duration
			ticks int
		}{
			{"one probe is under way", takes / 2, 0},
			{"it returned", takes, 1},
			{"the third returned", 2 * (pause + takes), 3},
			{"the fourth hangs", time.Hour, 3},
		} {
			<-time.After(step.after)
			if synctest.Wait(); ticks != step.ticks {
				t.Errorf("%s: systemd heard %d times, want %d", step.name, ticks, step.ticks)
			}
		}
		close(hangs)
		<-time.After(takes + pause + takes + time.Second)
		if synctest.Wait(); ticks != 5 {
			t.Errorf("after it returned systemd heard %d times", ticks)
		}
	})
}

// The unit is one that systemd reads without a word, and starts again whatever may pass by itself.
func TestUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/systemd/almanac.service")
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			has[name] = value
		}
	}
	never := strings.Fields(has["RestartPreventExitStatus"])
	for code, again := range map[int]bool{exitHung: true, exitFailed: true, exitConfig: false, exitUsage: false} {
		if got := has["Restart"] == "on-failure" && !slices.Contains(never, strconv.Itoa(code)); got != again {
			t.Errorf("after exit %d it starts again: %v, want %v", code, got, again)
		}
	}
	for _, stays := range []error{embedded.ErrNoEngine, embedded.ErrDirVersion, configError{errors.New("x")}, usageError{errors.New("x")}} {
		if code := exitCode(fmt.Errorf("starting: %w", stays), nil); !slices.Contains(never, strconv.Itoa(code)) {
			t.Errorf("%v: it starts again after exit %d", stays, code)
		}
	}
	wait, err := strconv.Atoi(has["TimeoutStopSec"])
	var s settings
	if key := findKey("shutdown_timeout"); err != nil || key.set(&s, key.def) != nil || time.Duration(wait)*time.Second < 2*s.ShutdownTimeout {
		t.Errorf("TimeoutStopSec=%s is too short: %v", has["TimeoutStopSec"], err)
	}
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: it does not read the unit")
	}
	self, err := os.Executable() // verify wants the program to be there
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "almanac.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/almanac", self)), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), program, "verify", "--man=no", unit).CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, said)
	}
}
