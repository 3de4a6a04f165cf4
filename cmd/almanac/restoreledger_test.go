package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/backup"
)

// What a newer backup knows of erasures cannot be read: an older one is restored by its file all the same, and the error names that. A place without
// a backup is not pruned, and nothing is made there.
func TestDamagedLedgerOfANewerBackup(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok(`{"user_id":"p-1","message":"x"}`, "send", "app", "--format", "ndjson")
	b.inTheEnd(1)
	dest := filepath.Join(b.dir, "backups")
	older := decoded[backedUp](b, "backup", dest, "-o", "json").Name
	b.ok("", "erase", "app", "--user", "p-1", "--yes")
	newer := decoded[backedUp](b, "backup", dest, "-o", "json").Name
	m, err := backup.ReadStore(backup.Directory(dest)).Manifest(t.Context(), newer)
	if err != nil {
		t.Fatal(err)
	}
	ledger := filepath.Join(dest, "objects", m.Ledger.SHA256[:2], m.Ledger.SHA256)
	text, err := os.ReadFile(ledger)
	if err == nil {
		err = os.Remove(ledger)
	}
	if err == nil {
		text[len(text)/2] ^= 1
		err = os.WriteFile(ledger, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := b.run("", "restore", dest, "--check"); r.code != exitFailed || !strings.Contains(r.err, older) {
		t.Errorf("the newest: exit %d, %s", r.code, r.err)
	}
	if r := b.run("", "restore", filepath.Join(dest, older), "--check"); r.code != exitOK || !strings.Contains(r.err, "the ledger of "+newer) {
		t.Errorf("the older by its file: exit %d, %s", r.code, r.err)
	}
	empty := t.TempDir()
	for _, at := range []string{empty, filepath.Join(empty, "nope")} {
		if r := b.run("", "backup", at, "--prune", "--keep", "1"); r.code != exitUsage {
			t.Errorf("%s: exit %d, %s", at, r.code, r.err)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("made there: %v, %v", left, err)
	}
	if r := b.run("", "backup", dest, "--prune", "--keep", "1"); r.code != exitOK || !strings.Contains(r.err, "removed: 1 older backup") || !strings.Contains(r.err, "freed: ") {
		t.Errorf("pruned: exit %d, %s", r.code, r.err)
	}
}
