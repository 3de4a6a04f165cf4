//go:build !linux

package embedded

import (
	"os"
	"syscall"
)

// childAttr keeps a Ctrl-C in the terminal from reaching the child: the parent stops it in its own order.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// self is the program this process was started from.
func self() (string, error) { return os.Executable() }
