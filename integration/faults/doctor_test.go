package faults

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// finding is a line of `almanac doctor -o json`.
type finding struct{ Check, Status, Found, Do string }

// doctor asks the command itself, and gives its findings and whether its exit code says that no check failed: 0, or 3 with warnings.
func (h *Cluster) doctor(t *testing.T, program string) (found []finding, well bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "doctor", "-o", "json", "--nats", h.natsURL, "--clickhouse", h.dsn)
	cmd.Env = append(cmd.Environ(), "HOME="+t.TempDir())
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 && exit.ExitCode() != 3) {
		t.Fatalf("doctor: %v", err)
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("doctor said %q: %v", out, err)
	}
	return found, exit == nil || exit.ExitCode() == 3
}

// command builds almanac.
func command(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "almanac")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/almanac").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// diagnosed wants a finding with this status, some of its words, and a word on what to do unless all is well.
func diagnosed(t *testing.T, found []finding, check, status, words string) {
	t.Helper()
	for _, f := range found {
		if f.Check == check && f.Status == status && strings.Contains(f.Found, words) {
			t.Logf("doctor: %s, %s: %s → %s", f.Status, f.Check, f.Found, f.Do)
			if (status == "fail") == (f.Do == "") {
				t.Errorf("%s says nothing about what to do", check)
			}
			return
		}
	}
	t.Errorf("doctor does not say %q of %s (%s): %+v", words, check, status, found)
}
