package inputs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// maxWait is how long anything may take on a busy machine.
const maxWait = 3 * time.Minute

// node is an `almanac up` of a test's own, with every listener of these inputs.
type node struct {
	t       *testing.T
	dir     string
	program string
	args    []string
	process *os.Process
	ended   <-chan struct{} // closed when the process is gone
	said    bytes.Buffer    // not read before ended
	embedded.Addresses
}

var build sync.Once
var program string
var buildErr error

// up builds and starts Almanac with more flags, and stops it at the end of the test.
func up(t *testing.T, more ...string) *node {
	t.Helper()
	build.Do(func() {
		var dir string
		if dir, buildErr = os.MkdirTemp("", "almanac-inputs-"); buildErr != nil {
			return
		}
		program = filepath.Join(dir, "almanac")
		out, err := exec.Command("go", "build", "-o", program, "../../cmd/almanac").CombinedOutput()
		if err != nil {
			buildErr = fmt.Errorf("%w: %s", err, out)
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	n := &node{t: t, dir: t.TempDir(), program: program}
	certificate, key := writeCertificate(t, n.dir)
	settings := "topics:\n- name: app\n- name: probe\n- name: sys\n- name: cpu\n  kind: metric\n"
	if err := os.WriteFile(filepath.Join(n.dir, "almanac.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	n.args = []string{"up", "--ports", "auto", "--log-format", "json", "--elastic", ":0", "--syslog-tcp", ":0", "--syslog-tls", ":0",
		"--syslog-udp", ":0", "--syslog-topic", "sys", "--syslog-cert", certificate, "--syslog-key", key}
	n.args = append(n.args, more...)
	n.start()
	t.Cleanup(func() {
		n.end(syscall.SIGTERM)
		if t.Failed() {
			t.Log(n.said.String())
		}
	})
	return n
}

// secret is the local token.
func (n *node) secret() string {
	n.t.Helper()
	text, err := keep.ReadLocal(filepath.Join(filepath.Join(n.dir, "data"), embedded.LocalTokenName))
	if err != nil {
		n.t.Fatal(err)
	}
	return text
}

// authorized sends the local token with each request.
func (n *node) authorized(next http.RoundTripper) http.RoundTripper {
	secret := n.secret()
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+secret)
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// start runs Almanac and returns when it is ready.
func (n *node) start() {
	n.t.Helper()
	cmd := n.command(n.args...)
	said, err := cmd.StderrPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	n.process, n.ended = cmd.Process, ended
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(said)
		lines.Buffer(nil, 1<<20)
		seen := false
		for lines.Scan() {
			n.said.Write(append(lines.Bytes(), '\n'))
			if !seen && strings.Contains(lines.Text(), `"message":"ready"`) && strings.Contains(lines.Text(), `"promise"`) {
				seen = true
				close(ready)
			}
		}
		_ = cmd.Wait()
	}()
	select {
	case <-ready:
	case <-ended:
		n.t.Fatalf("almanac up ended: %s", n.said.String())
	case <-time.After(maxWait):
		n.t.Fatal("almanac up is not ready")
	}
	if n.Addresses, err = embedded.ReadAddresses(filepath.Join(n.dir, "data")); err != nil {
		n.t.Fatal(err)
	}
}

// end sends a signal and waits until the process is gone.
func (n *node) end(signal syscall.Signal) {
	_ = n.process.Signal(signal)
	select {
	case <-n.ended:
	case <-time.After(maxWait):
		_ = n.process.Kill()
		<-n.ended
	}
}

// again ends Almanac by a signal and starts it where its clients know it.
func (n *node) again(signal syscall.Signal) {
	n.t.Helper()
	n.end(signal)
	if !slices.Contains(n.args, "--otlp-http") {
		n.args = append(n.args, "--otlp-http", strings.TrimPrefix(n.OTLPHTTP, "http://"), "--http", strings.TrimPrefix(n.HTTP, "http://"))
	}
	n.start()
}

func (n *node) command(args ...string) *exec.Cmd {
	cmd := exec.Command(n.program, args...)
	cmd.Dir = n.dir
	cmd.Env = append(os.Environ(), "ALMANAC_DATA="+filepath.Join(n.dir, "data"))
	if dir, err := filepath.Abs("../.."); err == nil {
		libraries, _ := filepath.Glob(filepath.Join(dir, "node_modules/@chdb/lib-*/libchdb.so"))
		if len(libraries) > 0 && os.Getenv("ALMANAC_LIBCHDB") == "" {
			cmd.Env = append(cmd.Env, "ALMANAC_LIBCHDB="+libraries[0])
		}
	}
	return cmd
}

// event is a line of `almanac query -o json`.
type event struct {
	Ts, Level, Service, Type, Message string
	UserID                            string `json:"user_id"`
	TraceID                           string `json:"trace_id"`
	Attributes                        map[string]string
}

// found waits until query returns count events of a topic under a filter.
func (n *node) found(topic, where string, count int) []event {
	n.t.Helper()
	var events []event
	embeddedtest.Eventually(n.t, maxWait, func() error {
		cmd := n.command("query", topic, "--where", where, "--limit", "1000")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%w: %s", err, stderr.String())
		}
		events = nil
		for line := range bytes.Lines(out) {
			var ev event
			if err := json.Unmarshal(line, &ev); err != nil {
				return fmt.Errorf("%w: %s", err, line)
			}
			events = append(events, ev)
		}
		if len(events) < count {
			return errors.New("events are missing")
		}
		return nil
	})
	if len(events) != count {
		n.t.Errorf("%s where %s: %d events, expected %d", topic, where, len(events), count)
	}
	return events
}

// has fails the test where an event lacks a field or has another value there.
func (ev *event) has(t *testing.T, fields map[string]string) {
	t.Helper()
	for name, want := range fields {
		got, ok := map[string]string{
			"level": ev.Level, "service": ev.Service, "type": ev.Type, "message": ev.Message, "user_id": ev.UserID, "trace_id": ev.TraceID, "ts": ev.Ts,
		}[name]
		if !ok {
			got, ok = ev.Attributes[name]
		}
		if !ok || got != want {
			t.Errorf("%s is %q, expected %q: %+v", name, got, want, *ev)
		}
	}
}

// alongside runs a client's program until the end of the test, and shows what it said where the test
// failed.
func alongside(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said: %.4000s", filepath.Base(cmd.Path), said.String())
		}
	})
}

// write writes a program's settings.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
