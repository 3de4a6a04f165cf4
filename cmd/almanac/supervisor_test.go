package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

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
