package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// child is one run of the engine process.
type child struct {
	cmd      *exec.Cmd
	lifeline *os.File      // our end; the child watches the other
	terminal *os.File      // our end of the child's standard input; nil: it does not have one
	gone     chan struct{} // closed after the process was reaped
	exit     error         // how it ended; read after gone
}

// spawn starts the engine. The parent-death signal belongs to the thread that forks, so one goroutine locks a thread,
// starts the child on it and keeps the thread until the child is gone.
// argv begins with the name the process goes by, mark is what the child does first. home is its directory. input becomes
// its standard input, terminal is the other end of it; both may be nil, and spawn closes input.
func spawn(path string, argv []string, mark, home string, log *engineLog, lock, terminal, input *os.File) (*child, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("opening the pipe to the engine: %w", err)
	}
	c := &child{cmd: &exec.Cmd{Path: path, Args: argv}, lifeline: write, terminal: terminal, gone: make(chan struct{})}
	if input != nil {
		c.cmd.Stdin = input
		defer func() { _ = input.Close() }()
	}
	c.cmd.Dir = home
	c.cmd.Env = childEnviron(home, mark)
	c.cmd.ExtraFiles = []*os.File{read, lock} // become lifelineFD and an open file that keeps the lock
	c.cmd.Stderr = log                        // and not what it prints elsewhere, which repeats its statements
	c.cmd.SysProcAttr = childAttr()
	c.cmd.WaitDelay = time.Second // a grandchild may hold the output open; do not wait for it forever

	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine, after the child
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.exit = c.cmd.Wait()
			close(c.gone)
		}
	}()
	err = <-started
	_ = read.Close()
	if err != nil {
		c.release()
		return nil, fmt.Errorf("starting the engine by %s: %w", path, err)
	}
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// stop asks the engine to end and, after patience, no longer asks.
func (c *child) stop(patience time.Duration) {
	defer c.release()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // an error means it is gone already
	select {
	case <-c.gone:
		return
	case <-ctx.Done():
	}
	_ = c.cmd.Process.Kill()
	<-c.gone
}

// release closes our ends of what the child holds.
func (c *child) release() {
	_ = c.lifeline.Close()
	if c.terminal != nil {
		_ = c.terminal.Close()
	}
}

// ended says in words how the child ended.
func (c *child) ended() string {
	var exit *exec.ExitError
	if errors.As(c.exit, &exit) {
		return exit.String()
	}
	if c.exit != nil {
		return c.exit.Error()
	}
	return "exit status 0"
}

// killSelf ends this process at once, without the engine's destructors: they are for callers that go on living.
func killSelf() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL) }
