package inputs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNodeClients runs loggers and clients of Node.js, each in its own way.
func TestNodeClients(t *testing.T) {
	dir := installed(t)
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
		{"otel", "app", "service = 'otel-js'", 3, map[string]string{
			"level": "warn", "message": "from otel-js", "user_id": "u-otel", "count": "7", "ratio": "0.5", "ok": "true", "list": `["a","b"]`,
			"resource.deployment.environment": "test", "scope.name": "probe", "scope.version": "1.2.3",
		}},
		{"pino-opentelemetry", "app", "service = 'pino-otel'", 1, map[string]string{"level": "warn", "message": "from pino-opentelemetry", "user_id": "u-pino-otel"}},
		{"winston-http", "app", "message = 'from winston-http'", 1, map[string]string{"level": "info", "user_id": "u-winston-http"}},
		{"winston-opentelemetry", "app", "service = 'winston-otel'", 1, map[string]string{"level": "error", "message": "from winston-opentelemetry", "user_id": "u-winston-otel", "n": "3"}},
		{"nats", "app", "message = 'from nats.js'", 1, map[string]string{"level": "info", "user_id": "u-nats", "n": "1"}},
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

// TestClickHouseClient asks by ClickHouse's own client for Node.js, which may read and not write.
func TestClickHouseClient(t *testing.T) {
	dir := installed(t)
	n := up(t)
	send := n.command("send", "app", "--format", "ndjson")
	send.Stdin = strings.NewReader(`{"message":"from clickhouse-client"}`)
	if out, err := send.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	runClient(t, n, dir, "node", "clickhouse.mjs")
}

// installed is the directory of the clients for Node.js.
func installed(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ALMANAC_INPUT_CLIENTS")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); dir == "" || err != nil {
		t.Skip("the clients for Node.js are not installed: make inputs")
	}
	return dir
}

// runClient runs a client until it ends.
func runClient(t *testing.T, n *node, dir, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HTTP="+n.HTTP, "ELASTIC="+n.Elastic, "OTLP_HTTP="+n.OTLPHTTP, "OTLP_GRPC="+n.OTLPGRPC, "NATS="+n.NATS)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %v: %v\n%s", program, args, err, out)
	}
}
