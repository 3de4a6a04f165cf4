package embedded

import "syscall"

// childAttr ties the child to the thread that starts it (which therefore must live as long as the child) and keeps a
// Ctrl-C in the terminal from reaching it: the parent stops it in its own order.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// self is this very program, even when its file was replaced by a newer build meanwhile.
func self() (string, error) { return "/proc/self/exe", nil }
