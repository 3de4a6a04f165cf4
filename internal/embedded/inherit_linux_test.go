package embedded_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// inheritable makes the processes that this one starts inherit f, as they do what a shell or a supervisor left open, and
// gives its name in /proc.
func inheritable(t *testing.T, f *os.File) string {
	t.Helper()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}
