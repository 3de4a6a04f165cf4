package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is an almanac of its own, for figures about processes.
type process struct {
	cmd  *exec.Cmd
	name string
	said output
	done chan struct{}
	err  error // once done is closed
	peak int64 // resident bytes, the most so far; once done is closed, the last
	mu   sync.Mutex
}

// startProducer runs the program that calls Produce.
func (s *Suite) startProducer(ctx context.Context, env map[string]string, args ...string) (*process, error) {
	return s.startProducerInto(ctx, nil, env, args...)
}

// startProducerInto is startProducer with what it prints elsewhere.
func (s *Suite) startProducerInto(ctx context.Context, stdout io.Writer, env map[string]string, args ...string) (*process, error) {
	producer := *s
	producer.Binary = s.Producer
	return producer.startProcessInto(ctx, stdout, env, append([]string{ProduceCommand}, args...)...)
}

// startProcess runs the binary with settings in its environment, so that no
// password is on a command line.
func (s *Suite) startProcess(ctx context.Context, env map[string]string, args ...string) (*process, error) {
	return s.startProcessInto(ctx, nil, env, args...)
}

// startProcessInto is startProcess with what it prints elsewhere; nil keeps that
// with its messages.
func (s *Suite) startProcessInto(ctx context.Context, stdout io.Writer, env map[string]string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, s.Binary, args...), name: "almanac " + args[0], done: make(chan struct{})}
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "ALMANAC_") && !strings.HasPrefix(v, "ALMANAC_LIBCHDB=")
	})
	p.cmd.Env = append(p.cmd.Env, "ALMANAC_LOG_FORMAT=json")
	for k, v := range env {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = stopWait
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if stdout != nil {
		p.cmd.Stdout = stdout
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	go p.watch()
	return p, nil
}

const (
	// stopWait is longer than a process's own shutdown_timeout.
	stopWait = 20 * time.Second
	// peakEvery is how often the memory is read. The kernel keeps the peak; only
	// what grows in the last moment before the end is missed.
	peakEvery = 50 * time.Millisecond
)

func (p *process) watch() {
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	tick := time.NewTicker(peakEvery)
	defer tick.Stop()
	for {
		select {
		case p.err = <-ended:
			close(p.done)
			return
		case <-tick.C:
			p.mu.Lock()
			p.peak = max(p.peak, statusBytes(p.cmd.Process.Pid, "VmHWM:"))
			p.mu.Unlock()
		}
	}
}

// peakBytes is the most resident memory the process had so far.
func (p *process) peakBytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}

// ready waits for the log line by which a part says that it works.
func (p *process) ready(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !p.said.contains(`"message":"ready"`) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready: %w: %s", p.name, p.err, p.said.tail())
		case <-tick.C:
		}
	}
	return nil
}

// wait waits for a process that ends by itself.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.done:
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w: %s", p.name, p.err, p.said.tail())
	}
	return nil
}

// stop asks it to end and waits; a process that does not is killed.
func (p *process) stop() {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		<-p.done
		return
	}
	select {
	case <-p.done:
	case <-time.After(stopWait):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// output keeps the last maxOutput bytes of what a process says.
type output struct {
	mu   sync.Mutex
	text []byte
}

const maxOutput = 64 << 10

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	if n := len(o.text) - maxOutput; n > 0 {
		o.text = append(o.text[:0], o.text[n:]...)
	}
	return len(b), nil
}

func (o *output) contains(s string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Contains(o.text, []byte(s))
}

// tail is the end of it, for error messages.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(string(o.text[max(0, len(o.text)-500):]))
}

// statusBytes is a size of /proc/<pid>/status in bytes, 0 where there is none.
func statusBytes(pid int, field string) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), field)
	words := strings.Fields(after)
	if len(words) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(words[0], 10, 64)
	return kib << 10
}

// children are the processes that pid started and that still run.
func children(pid int) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(f) > 1 && f[1] == strconv.Itoa(pid) {
			pids = append(pids, child)
		}
	}
	return pids
}
