package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// promtoolEnv names Prometheus' own program, which make promtool builds; one on PATH will do.
const promtoolEnv = "ALMANAC_PROMTOOL"

// What Prometheus' own program says of the rules and of their tests. It also reads the page of TestScrapeHasWhatIsNamed.
func TestPromtool(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"the rules":                      {"check", "rules", "--lint=all", "--lint-fatal", "almanac.rules.yaml"},
		"their tests":                    {"test", "rules", "almanac.test.yaml"},
		"the configuration of a compose": {"check", "config", "--syntax-only", "prometheus.yml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			promtool(t, nil, args...)
		})
	}
}

// promtool runs Prometheus' program where the rules are, where there is one.
func promtool(t *testing.T, stdin []byte, args ...string) {
	t.Helper()
	program := os.Getenv(promtoolEnv)
	if program == "" {
		program, _ = exec.LookPath("promtool")
	}
	if program == "" {
		t.Skip("no promtool here: make promtool builds it, and Debian's package prometheus has it")
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Stdin = "../../deploy/prometheus", bytes.NewReader(stdin)
	said, err := cmd.CombinedOutput()
	if t.Logf("promtool %s: %s", strings.Join(args, " "), said); err != nil {
		t.Errorf("promtool %s: %v", strings.Join(args, " "), err)
	}
}
