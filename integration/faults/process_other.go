//go:build !linux

package faults

import "syscall"

func deathAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func startOnThread(l *life, listen func()) error {
	if err := l.cmd.Start(); err != nil {
		return err
	}
	go func() {
		listen()
		l.exit = l.cmd.Wait()
		close(l.gone)
	}()
	return nil
}

func peakMemory(int) uint64 { return 0 }
