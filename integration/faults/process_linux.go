package faults

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// deathAttr makes a part end with the test, even when that is killed.
func deathAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// startOnThread starts the process on a thread that lives as long as it does: the parent-death signal is the thread's.
func startOnThread(l *life, listen func()) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock
		err := l.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		listen()
		l.exit = l.cmd.Wait()
		close(l.gone)
	}()
	return <-started
}

// peakMemory is the highest resident memory of a process.
func peakMemory(pid int) uint64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, ok := bytes.Cut(data, []byte("VmHWM:"))
	if !ok {
		return 0
	}
	f := bytes.Fields(after)
	kb, _ := strconv.ParseUint(string(f[0]), 10, 64)
	return kb << 10
}
