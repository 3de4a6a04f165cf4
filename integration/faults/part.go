package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Part is one process of a Cluster, over all its lives.
type Part struct {
	Spec Spec

	log  string
	mu   sync.Mutex
	run  *life
	said map[string]uint64 // sums of what its lives reported
	peak uint64            // resident bytes
}

// life is one run of a part.
type life struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ready chan struct{}
	gone  chan struct{}
	exit  error  // read after gone
	child int    // the engine's own process
	dsn   string // of the engine
}

// newPart is a part that never ran; its log is in dir.
func newPart(dir string, spec Spec) *Part {
	return &Part{Spec: spec, log: filepath.Join(dir, spec.Name+".log"), said: map[string]uint64{}}
}

// Start runs the part and returns at once.
func (p *Part) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && !p.run.ended() {
		return fmt.Errorf("faults: %s runs already", p.Spec.Name)
	}
	spec, err := json.Marshal(p.Spec)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return errors.Join(err, log.Close())
	}
	l := &life{cmd: exec.Command(exe), ready: make(chan struct{}), gone: make(chan struct{})}
	l.cmd.Args = []string{"almanac-" + p.Spec.Name}
	l.cmd.Env = append(os.Environ(), PartEnv+"="+string(spec), "GOMAXPROCS=2")
	l.cmd.Stderr = log
	l.cmd.SysProcAttr = deathAttr()
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		return errors.Join(err, log.Close())
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return errors.Join(err, log.Close())
	}
	if err := startOnThread(l, func() { p.listen(l, out) }); err != nil {
		return errors.Join(fmt.Errorf("faults: starting %s: %w", p.Spec.Name, err), log.Close())
	}
	p.run = l
	return log.Close()
}

// listen reads what the process reports: "word", or "word number", or "dsn text".
func (p *Part) listen(l *life, out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		p.mu.Lock()
		switch n, err := strconv.ParseUint(rest, 10, 64); {
		case word == "ready":
			if !isDone(l.ready) {
				close(l.ready)
			}
		case word == "dsn":
			l.dsn = rest
		case word == "pid":
			l.child = int(n)
		case err == nil:
			p.said[word] += n
		default:
			p.said[word]++
		}
		p.mu.Unlock()
	}
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (l *life) ended() bool { return isDone(l.gone) }

func (p *Part) current() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// Said is how often, or how much, the part reported under a word, over all lives.
func (p *Part) Said(word string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said[word]
}

// Ready waits until the part says that it works.
func (p *Part) Ready(ctx context.Context) error {
	l := p.current()
	select {
	case <-l.ready:
		return nil
	case <-l.gone:
		return fmt.Errorf("faults: %s ended before it was ready: %v\n%s", p.Spec.Name, l.exit, p.Words()) //nolint:errorlint // nil after exit code 0
	case <-ctx.Done():
		return fmt.Errorf("faults: %s is not ready: %w\n%s", p.Spec.Name, ctx.Err(), p.Words())
	}
}

// Gone is closed when the present life has ended.
func (p *Part) Gone() <-chan struct{} { return p.current().gone }

// Alive says whether it runs.
func (p *Part) Alive() bool { l := p.current(); return l != nil && !l.ended() }

// DSN of an engine that is ready.
func (p *Part) DSN() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run.dsn
}

// Engine is the process of the engine itself, below an engine part.
func (p *Part) Engine() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run.child
}

// Kill ends the process by SIGKILL and waits until it is gone.
func (p *Part) Kill() {
	l := p.current()
	if l == nil || l.ended() {
		return
	}
	p.weigh()
	p.signal(l, syscall.SIGKILL)
	<-l.gone
}

// Stop freezes the process, Continue lets it go on.
func (p *Part) Stop() { p.signal(p.current(), syscall.SIGSTOP) }

// Continue lets a frozen process go on.
func (p *Part) Continue() { p.signal(p.current(), syscall.SIGCONT) }

// signal reaches the engine's own process too. SIGKILL reaches the parent first, which would start
// a killed engine again; other signals reach the engine first.
func (p *Part) signal(l *life, sig syscall.Signal) {
	if l == nil || l.ended() {
		return
	}
	p.mu.Lock()
	child := l.child
	p.mu.Unlock()
	if sig == syscall.SIGKILL {
		_ = l.cmd.Process.Signal(sig)
	}
	if child > 0 {
		_ = syscall.Kill(child, sig)
	}
	if sig != syscall.SIGKILL {
		_ = l.cmd.Process.Signal(sig)
	}
}

// Tell writes a line to the process.
func (p *Part) Tell(line string) { _, _ = io.WriteString(p.current().stdin, line+"\n") }

// Finish tells a producer to stop writing and waits until all it wrote is settled.
func (p *Part) Finish(ctx context.Context) error {
	p.weigh()
	p.Tell("stop")
	l := p.current()
	select {
	case <-l.gone:
		if l.exit != nil {
			return fmt.Errorf("faults: %s: %w\n%s", p.Spec.Name, l.exit, p.Words())
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("faults: %s does not finish: %w\n%s", p.Spec.Name, ctx.Err(), p.Words())
	}
}

// wordBytes is how much of a part's log is quoted.
const wordBytes = 6000

// Words are the last lines of its log.
func (p *Part) Words() string {
	data, _ := os.ReadFile(p.log)
	if len(data) > wordBytes {
		data = data[len(data)-wordBytes:]
	}
	return string(data)
}

// weigh notes the resident memory of the process at its highest.
func (p *Part) weigh() {
	l := p.current()
	if l == nil || l.ended() {
		return
	}
	p.mu.Lock()
	pid := l.cmd.Process.Pid
	if l.child > 0 {
		pid = l.child
	}
	p.mu.Unlock()
	peak := peakMemory(pid)
	p.mu.Lock()
	p.peak = max(p.peak, peak)
	p.mu.Unlock()
}

// Peak is its resident memory at its highest, in bytes, over all lives that were weighed.
func (p *Part) Peak() uint64 {
	p.weigh()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}

// killEngine kills the engine's own process, and leaves it to its parent to start it again.
func (p *Part) killEngine() { _ = syscall.Kill(p.Engine(), syscall.SIGKILL) }
