package integration

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/cleaner"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/sinks"
)

// partEnv makes this test binary a router or a sink: a process of its own, which
// can be killed. Its value is a part as JSON.
const partEnv = "ALMANAC_TEST_PART"

func TestMain(m *testing.M) {
	if spec := os.Getenv(partEnv); spec != "" {
		if err := runPart(spec); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	embeddedtest.Main(m)
}

// part says what a process shall be.
type part struct {
	Role       string // "router", "sink", "cleaner" or "producer"
	NATS       string
	ClickHouse string
	// CrashAt is the point at which the process kills itself, the CrashHit-th
	// time it comes there; empty: never.
	CrashAt  string
	CrashHit int
	// Of a producer with a spool: it logs the events First to Last-1.
	SpoolDir    string
	First, Last int
}

func (p part) String() string { return fmt.Sprintf("%s (%s:%d)", p.Role, p.CrashAt, p.CrashHit) }

func runPart(spec string) error {
	var p part
	if err := json.Unmarshal([]byte(spec), &p); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // its parent holds the other end: it does not outlive it
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if p.Role == "producer" {
		return runSpooling(ctx, p)
	}
	nc, err := nats.Connect(p.NATS, nats.Timeout(maxWait*4*time.Second), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		return err
	}
	reg, err := answered(func() (*registry.Registry, error) { return registry.Open(ctx, nc) })
	if err != nil {
		return err
	}
	var hits atomic.Int64
	crash := func(point string) {
		if point == p.CrashAt && int(hits.Add(1)) >= p.CrashHit {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	if p.Role == "router" {
		r, err := answered(func() (*router.Router, error) {
			return router.New(ctx, nc, router.Config{Registry: reg, Discover: 100 * time.Millisecond, Crash: crash, Hooks: router.Hooks{
				Fault: func(topic, lane string, err error) { _, _ = fmt.Fprintln(os.Stderr, topic, lane, err) },
			}})
		})
		if err != nil {
			return err
		}
		return r.Run(ctx)
	}
	db, err := tables.Open(p.ClickHouse)
	if err != nil {
		return err
	}
	if p.Role == "cleaner" {
		return runCleaner(ctx, cleaner.Config{Registry: reg, DB: db, MinAge: cleanerMinAge, Crash: crash})
	}
	run, err := withJanitor(ctx, nc, sinkConfig{Config: sinks.Config{Registry: reg, DB: db, Linger: 20 * time.Millisecond, Housekeeping: housekeeping, Crash: crash, Hooks: sinks.Hooks{
		Fault: func(ref schemas.ShardRef, err error) { _, _ = fmt.Fprintln(os.Stderr, ref, err) },
	}}})
	if err != nil {
		return err
	}
	return run(ctx)
}

// process is a part at work.
type process struct {
	part
	t    testing.TB
	cmd  *exec.Cmd
	in   io.Closer
	said said
	gone chan struct{} // closed when it ended
}

// dsn is the address of the test's database with its password.
func (e *env) dsn() string {
	e.t.Helper()
	return e.srv.HTTPDSNOf(access.UserOperator)
}

// process starts a part as a process of its own, until the end of the test.
func (e *env) process(p part) *process {
	e.t.Helper()
	p.NATS, p.ClickHouse = cmp.Or(p.NATS, e.srv.NATSURL), e.dsn()
	spec, err := json.Marshal(p)
	if err != nil {
		e.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		e.t.Fatal(err)
	}
	c := &process{part: p, t: e.t, cmd: exec.Command(self), gone: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), partEnv+"="+string(spec))
	c.cmd.Stderr = &c.said
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		e.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	go func() {
		defer close(c.gone)
		_ = c.cmd.Wait()
	}()
	e.t.Cleanup(c.kill)
	return c
}

// kill ends the process without warning.
func (c *process) kill() {
	_ = c.cmd.Process.Kill() // it may be gone already
	<-c.gone
	_ = c.in.Close()
}

// killed fails the test when the process ended in another way than by SIGKILL.
func (c *process) killed() {
	c.t.Helper()
	if s, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
		c.t.Errorf("%s ended by itself: %v\n%s", c.part, c.cmd.ProcessState, c.said.text())
	}
}

// said is the last of what a process wrote to stderr.
type said struct {
	mu  sync.Mutex
	buf []byte
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(s.buf, b...)
	s.buf = s.buf[max(0, len(s.buf)-4<<10):]
	return len(b), nil
}

func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.buf)
}
