package inputs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNodeClients runs loggers and clients of Node.js, each in its own way.
func TestNodeClients(t *testing.T) {
	dir := os.Getenv("ALMANAC_INPUT_CLIENTS")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); dir == "" || err != nil {
		t.Skip("pino-loki, winston-loki, pino-elasticsearch, winston-elasticsearch and @elastic/elasticsearch are not installed: make inputs")
	}
	n := up(t)
	for _, c := range []struct {
		program, topic, where string
		count                 int
		fields                map[string]string
	}{
		{"pino-loki", "app", "service = 'pino-loki'", 1, map[string]string{"level": "info", "message": "from pino-loki", "user_id": "u-pino-loki", "nested.a": "1"}},
		{"winston-loki", "app", "level = 'warn'", 2, map[string]string{"level": "warn"}},
		{"pino-elasticsearch", "probe", "message = 'from pino-elasticsearch'", 1, map[string]string{"level": "error", "level_text": "50", "user_id": "u-pino-es", "nested.a": "[1]"}},
		{"winston-elasticsearch", "probe", "message = 'from winston-elasticsearch'", 1, map[string]string{"level": "info"}},
		{"elasticsearch", "probe", "message = 'from @elastic/elasticsearch'", 250, map[string]string{"level": "warn", "level_text": "WARN"}},
	} {
		t.Run(c.program, func(t *testing.T) {
			runClient(t, n, dir, "node", c.program+".mjs")
			for _, ev := range n.found(c.topic, c.where, c.count) {
				ev.has(t, c.fields)
			}
		})
	}
}

// runClient runs a client until it ends.
func runClient(t *testing.T, n *node, dir, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HTTP="+n.HTTP, "ELASTIC="+n.Elastic)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %v: %v\n%s", program, args, err, out)
	}
}
