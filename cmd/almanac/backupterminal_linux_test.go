package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A backup and a restore show on a terminal how far they are, and in a pipe nothing of it.
func TestBackupOnATerminal(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	up := b.up("--profile", "test")
	b.ok(lines(1000), "send", "app")
	b.inTheEnd(1000)
	dest := filepath.Join(b.dir, "backups")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"backup", dest}, []string{"stream EVENTS  "}},
		{[]string{"restore", dest, "--ledger", b.data(), "--data", filepath.Join(b.dir, "shown")}, []string{"comparing digests  ", "stream EVENTS  ", "restored: 1000 rows"}},
	} {
		shown, code := b.onTerminal(c.args...)
		if code != exitOK || strings.Count(shown, clearLine) < 3 {
			t.Errorf("%s: exit %d, and it shows how far it is %d times: %q", c.args[0], code, strings.Count(shown, clearLine), shown)
		}
		contains(t, shown, c.want...)
	}
	for _, args := range [][]string{{"backup", dest}, {"restore", dest, "--ledger", b.data(), "--data", filepath.Join(b.dir, "piped")}} {
		if r := b.run("", args...); r.code != exitOK || strings.ContainsAny(r.out+r.err, "\r\x1b") {
			t.Errorf("%s in a pipe: exit %d, %q%q", args[0], r.code, r.out, r.err)
		}
	}
	up.stop(syscall.SIGTERM)
}
