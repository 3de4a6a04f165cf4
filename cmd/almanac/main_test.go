package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// asCommand makes the test binary be the command, and the processes that it starts
// itself without the settings of its own environment.
const asCommand = "TEST_ALMANAC_COMMAND"

// stateApartEnv is how far apart a command of a test reads the numbers of what Almanac has.
const stateApartEnv = "TEST_ALMANAC_STATE_APART"

// coldKillsEnv is how often an up, or its engine, is killed at random times while shards move, each way; make damage sets it.
const coldKillsEnv = "ALMANAC_COLD_KILLS"

// coldCrashEnv is the point of a move of shards at which a command of a test kills itself.
const coldCrashEnv = "TEST_ALMANAC_COLD_CRASH"

// coldEveryEnv is how far apart the rounds of a command of a test are that move shards.
const coldEveryEnv = "TEST_ALMANAC_COLD_EVERY"

// restoreCrashEnv is the step of a restore after which a command of a test kills itself.
const restoreCrashEnv = "TEST_ALMANAC_RESTORE_CRASH"

// restoreHeldEnv is a step of a restore and a file: after that step a command of a test waits for as long as the file is there.
const restoreHeldEnv = "TEST_ALMANAC_RESTORE_HELD"

// rulesWaitEnv is how long a command of a test waits for routers to have privacy rules.
const rulesWaitEnv = "TEST_ALMANAC_RULES_WAIT"

// natsTimeoutEnv is how long NATS may take to accept a connection of a command of a test.
const natsTimeoutEnv = "TEST_ALMANAC_NATS_TIMEOUT"

// hungAfterEnv is when the NATS of a command of a test counts as one that hangs.
const hungAfterEnv = "TEST_ALMANAC_HUNG_AFTER"

// exportEveryEnv is how far apart a command of a test sends its numbers to otlp_export.
const exportEveryEnv = "TEST_ALMANAC_EXPORT_EVERY"

// panicEnv has a goroutine of a command of a test panic at SIGUSR1, with what it is.
const panicEnv = "TEST_ALMANAC_PANIC"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		duration(os.Getenv(stateApartEnv), &stateApart)
		duration(os.Getenv(hungAfterEnv), &hungAfter)
		duration(os.Getenv(exportEveryEnv), &exportEvery)
		duration(os.Getenv(rulesWaitEnv), &rulesWait)
		duration(os.Getenv(natsTimeoutEnv), &natsTimeout)
		if what := os.Getenv(panicEnv); what != "" {
			signals := make(chan os.Signal, 1)
			signal.Notify(signals, syscall.SIGUSR1)
			go func() {
				<-signals
				panic(what)
			}()
		}
		duration(os.Getenv(coldEveryEnv), &coldEvery)
		if at := os.Getenv(coldCrashEnv); at != "" {
			coldCrash = func(point string) {
				if point == at {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				}
			}
		}
		if at := os.Getenv(restoreCrashEnv); at != "" {
			restoreStep = func(step string) {
				if step == at {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				}
			}
		}
		if at, file, ok := strings.Cut(os.Getenv(restoreHeldEnv), " "); ok {
			restoreStep = func(step string) {
				for step == at {
					if _, err := os.Stat(file); err != nil {
						return
					}
					<-time.After(10 * time.Millisecond)
				}
			}
		}
		main()
		return
	}
	if os.Getenv(backupsEnv)+os.Getenv(backupLargeEnv)+os.Getenv(logqlLargeEnv)+os.Getenv(coldKillsEnv) != "" {
		maxWait = 20 * time.Minute
	}
	natsTimeout = time.Minute // of commands that tests call in this process
	embeddedtest.Main(m)
}

// maxWait is how long anything may take on a machine that is busy: longer where a test runs in its long form, which has more to store.
var maxWait = 3 * time.Minute

// box is a place to run the command in: no settings but those of the test.
type box struct {
	t   *testing.T
	dir string
	env []string
	// program is run in place of the test binary.
	program string
	// hostile: its NATS may refuse clients without credentials.
	hostile bool
}

func newBox(t *testing.T, env ...string) *box {
	t.Helper()
	b := &box{t: t, dir: t.TempDir()}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, envPrefix) && !strings.HasPrefix(e, "XDG_") && !strings.HasPrefix(e, "HOME=") {
			b.env = append(b.env, e)
		}
	}
	// Under the race detector each process would sleep for a second at its end.
	b.env = append(b.env, asCommand+"=1", "GORACE=atexit_sleep_ms=0", "HOME="+b.dir, envPrefix+"DATA="+filepath.Join(b.dir, "data"))
	// A busy machine takes longer than people are to wait. A test of that itself names what it needs.
	b.env = append(b.env, rulesWaitEnv+"="+halfWait(), natsTimeoutEnv+"=1m")
	b.env = append(b.env, env...)
	return b
}

// seeded returns random numbers of a seed that the test prints.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func (b *box) write(name, text string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// result is what a call left behind.
type result struct {
	out, err string
	code     int
}

func (b *box) command(ctx context.Context, args ...string) *exec.Cmd {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, cmp.Or(b.program, self), args...)
	cmd.Dir, cmd.Env = b.dir, b.env
	return cmd
}

// run calls the command and waits.
func (b *box) run(stdin string, args ...string) result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	cmd := b.command(ctx, args...)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }, 10*time.Second // one that hangs says where
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	code := exitStatus(b.t, cmd.Run())
	checkExit(b.t, args, code)
	return result{code: code, out: out.String(), err: errs.String()}
}

// ok calls the command and fails the test unless it succeeds. A verb that waits for what is stored waits for as long as a busy machine takes.
func (b *box) ok(stdin string, args ...string) string {
	b.t.Helper()
	if b.program == "" { // an older one may not have the flag
		args = waiting(args)
	}
	r := b.run(stdin, args...)
	if r.code != 0 {
		b.t.Fatalf("almanac %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// decoded is the JSON that a call prints.
func decoded[T any](b *box, args ...string) (v T) {
	b.t.Helper()
	v, text := decodedText[T](b, args...)
	if short := shortTime.FindString(text); short != "" {
		b.t.Errorf("almanac %s: the time %s does not have nine digits", strings.Join(args, " "), short)
	}
	return v
}

// decodedText is decoded for answers with what others wrote, whose times have any number of digits.
func decodedText[T any](b *box, args ...string) (v T, text string) {
	b.t.Helper()
	text = b.ok("", args...)
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		b.t.Fatalf("almanac %s printed no JSON: %v\n%s", strings.Join(args, " "), err, text)
	}
	return v, text
}

// shortTime is a JSON string that is a time with less than nine digits after the point. What the tests
// store does not have one.
var shortTime = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8})?(Z|[+-]\d\d:\d\d)"`)

func exitStatus(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode() // -1 when a signal killed it
	}
	t.Fatal(err)
	return 0
}

// needEngine lets the command find the engine from wherever it runs.
func (b *box) needEngine() {
	b.t.Helper()
	if e := embeddedtest.FindEngine(b.t); e.Kind == embedded.EngineLibrary {
		b.env = append(b.env, embedded.LibraryEnv+"="+e.Path)
	}
}

// daemon is a running command.
type daemon struct {
	b    *box
	cmd  *exec.Cmd
	done chan struct{}
	code int

	mu  sync.Mutex
	err bytes.Buffer
}

// Write keeps stderr.
func (s *daemon) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err.Write(p)
}

func (s *daemon) stderr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err.String()
}

// background starts a command that goes on until it is told. It has longer to end than outside of tests, unless the test says how long.
func (b *box) background(args ...string) *daemon {
	b.t.Helper()
	s := &daemon{b: b, cmd: b.command(context.Background(), args...), done: make(chan struct{})}
	s.cmd.Env = append([]string{envPrefix + "SHUTDOWN_TIMEOUT=" + halfWait()}, s.cmd.Env...) // of two, the last is taken
	s.cmd.Stderr = s
	if err := s.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait()
		s.code = s.cmd.ProcessState.ExitCode()
	}()
	b.t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.done
	})
	return s
}

// up starts `almanac up` on free ports and waits for its ready line. The test fails if its NATS refuses anything to a part
// or to a verb.
func (b *box) up(args ...string) *daemon {
	b.t.Helper()
	t := b.t
	b.needEngine()
	s := b.background(append([]string{"up", "--ports", "auto", "--log-format", "json"}, args...)...)
	t.Cleanup(func() { // before it is killed
		for line := range strings.Lines(s.stderr()) {
			if strings.Contains(line, "Violation") && !(b.hostile && strings.Contains(line, "user:"+access.UserLocal)) {
				t.Error(line)
			}
		}
	})
	s.says(`"message":"ready"`)
	return s
}

// says waits until stderr has the text.
func (s *daemon) says(text string) {
	s.b.t.Helper()
	embeddedtest.Eventually(s.b.t, maxWait, func() error {
		if strings.Contains(s.stderr(), text) {
			return nil
		}
		select {
		case <-s.done:
			s.b.t.Fatalf("it ended with %d before it said %q:\n%s", s.code, text, s.stderr())
		default:
		}
		return errors.New("it has not said " + text)
	})
}

// stop sends a signal and returns the exit code, also of one that came to its end by itself.
func (s *daemon) stop(sig syscall.Signal) int {
	s.b.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.b.t.Fatal(err)
	}
	select {
	case <-s.done:
	case <-time.After(maxWait):
		s.b.t.Fatalf("it did not end within %s of %s:\n%s", maxWait, sig, s.stderr())
	}
	return s.code
}

func contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}
