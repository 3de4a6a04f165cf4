package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

func (b *box) data() string { return filepath.Join(b.dir, "data") }

func TestUpStartsAndStops(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.write("almanac.yaml", "topics:\n- name: auth\n  fields: [{name: duration_ms, type: float64}]\n  keep_days: 30\n")
	up := b.up()
	contains(t, up.stderr(), `"app":"kept forever"`, `"auth":"kept 30 days"`, "fsync", b.data())
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	contains(t, up.stderr(), a.NATS, a.ClickHouseHTTP, a.ClickHouseTCP, a.HTTP)

	// A second one on the same directory is refused and names the owner.
	r := b.run("", "up", "--ports", "auto")
	if r.code != exitFailed {
		t.Errorf("a second up: exit %d, want %d", r.code, exitFailed)
	}
	contains(t, r.err, "in use", b.data(), strconv.Itoa(up.cmd.Process.Pid))

	// Taken ports are refused by name.
	for _, flags := range [][]string{{"--http", strings.TrimPrefix(a.HTTP, "http://")}, {"--nats", strings.TrimPrefix(a.NATS, "nats://")}} {
		r := b.run("", append([]string{"up", "--ports", "auto", "--data", filepath.Join(b.dir, "other")}, flags...)...)
		if r.code != exitFailed {
			t.Errorf("a taken port: exit %d, want %d", r.code, exitFailed)
		}
		_, port, _ := net.SplitHostPort(flags[1])
		contains(t, r.err, "port in use", port, "--ports auto")
	}

	awaitHTTP(t, a.HTTP)
	b.seenByTop()
	if code := up.stop(syscall.SIGINT); code != exitInterrupted {
		t.Errorf("Ctrl-C: exit %d, want %d", code, exitInterrupted)
	}
	if _, err := embedded.ReadAddresses(b.data()); !errors.Is(err, embedded.ErrNoAddresses) {
		t.Errorf("after the end the addresses are %v, want none", err)
	}
	// It starts again on what it left, without the file: topics stay declared.
	if err := os.Remove(filepath.Join(b.dir, "almanac.yaml")); err != nil {
		t.Fatal(err)
	}
	again := b.up()
	contains(t, again.stderr(), `"auth":"kept 30 days"`)
	if code := again.stop(syscall.SIGTERM); code != exitOK {
		t.Errorf("SIGTERM: exit %d, want %d", code, exitOK)
	}
}

// awaitHTTP waits until checkHTTP finds nothing: a busy server may answer a probe late.
func awaitHTTP(t *testing.T, base string) {
	t.Helper()
	embeddedtest.Eventually(t, maxWait, func() error { return checkHTTP(base) })
}

// checkHTTP returns an error unless each page of operations is as it should be.
func checkHTTP(base string) error {
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/version": 200, "/nothing": 404} {
		resp, err := http.Get(base + path) //nolint:noctx // a test
		if err != nil {
			return err
		}
		var body map[string]any
		err = json.NewDecoder(resp.Body).Decode(&body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != want {
			return fmt.Errorf("%s: %s, %v, %w; want %d and JSON", path, resp.Status, body, err, want)
		}
	}
	resp, err := http.Get(base + "/metrics") //nolint:noctx // a test
	if err != nil {
		return err
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return err
	}
	for _, want := range []string{`almanac_build_info{`, `almanac_metrics_source_failed{source="dispatcher"} 0`, `almanac_metrics_source_failed{source="front"} 0`, "process_resident_memory_bytes "} {
		if !strings.Contains(string(text), want) {
			return fmt.Errorf("/metrics lacks %q: %s", want, text)
		}
	}
	return nil
}

func TestUpRefusesDirectories(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.needEngine()
	b.write("data/VERSION", "99\n")
	r := b.run("", "up", "--ports", "auto")
	if r.code != exitConfig {
		t.Errorf("exit %d, want %d", r.code, exitConfig)
	}
	contains(t, r.err, "another format", `"99"`, b.data())
	b.write("mine/thesis.txt", "precious")
	r = b.run("", "up", "--ports", "auto", "--data", "mine")
	contains(t, r.err, "not an Almanac data directory", "thesis.txt")
}

// An up whose servers are elsewhere, and a router and a sink beside it.
func TestParts(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t)
	b := newBox(t, "ALMANAC_NATS="+s.NATSURL, "ALMANAC_CLICKHOUSE="+s.HTTPDSN(), "ALMANAC_LOG_FORMAT=json")
	b.write("almanac.yaml", "topics: [{name: auth}]")

	sink := b.background("sink") // before there is a registry: it waits
	sink.says("not ready yet")
	router := b.background("router", "--events-bytes", "1GiB", "--shards-bytes", "1GiB", "--http", "127.0.0.1:0")
	router.says("ready")
	sink.says(`"message":"ready"`)
	b.ok(lines(1000), "send", "auth")
	embeddedtest.Eventually(t, maxWait, func() error {
		if got := strings.TrimSpace(b.run("", "sql", "SELECT count() AS n FROM auth").out); got != `{"n":1000}` {
			return errors.New(got)
		}
		return nil
	})
	if r := b.run("x", "send", "app"); r.code != exitUsage { // only up makes app
		t.Errorf("send to an undeclared topic: exit %d, want %d", r.code, exitUsage)
	}
	embeddedtest.Eventually(t, maxWait, func() error {
		if said := b.examined(); !strings.Contains(said, "1 alive") {
			return errors.New(said)
		}
		return nil
	})

	if code := sink.stop(syscall.SIGTERM); code != exitOK {
		t.Errorf("sink after SIGTERM: exit %d, want %d", code, exitOK)
	}
	if code := router.stop(syscall.SIGINT); code != exitInterrupted {
		t.Errorf("router after SIGINT: exit %d, want %d", code, exitInterrupted)
	}
	b.diagnosed(exitFailed, "none is alive", "almanac router")

	up := b.background("up", "--ports", "auto", "--events-bytes", "1GiB", "--shards-bytes", "1GiB")
	up.says(`"message":"ready"`)
	contains(t, up.stderr(), "as the NATS server at")
	if code := up.stop(syscall.SIGTERM); code != exitOK {
		t.Errorf("up after SIGTERM: exit %d, want %d", code, exitOK)
	}
}

// What was said of the streams' sizes is believed.
func TestStreamLimits(t *testing.T) {
	t.Parallel()
	s := &settings{EventsBytes: 1 << 30, Replicas: 3}
	got := streamLimits(s, schemas.DefaultStreamLimits)
	want := schemas.DefaultStreamLimits
	want.EventsBytes, want.Replicas, want.Said.Events = 1<<30, 3, true
	if got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
	if n := storeBytes(s); n != 0 {
		t.Errorf("with one size left open the store has %d bytes, want what the disk has", n)
	}
	s.ShardsBytes = 2 << 30
	if n := storeBytes(s); n < 3<<30 {
		t.Errorf("a store of %d bytes does not hold both streams", n)
	}
}

// A start is tried again when waiting may help, and only then.
func TestPassing(t *testing.T) {
	t.Parallel()
	if passing(configError{errors.New("x")}) || passing(streams.ErrUnsafe) || !passing(registry.ErrNoRegistry) {
		t.Error("wrong errors are waited out")
	}
}
