package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/backup"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
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

// Erasures that were redacted after a backup name no one in what is restored of it. Where the end of a shard has events of one, that is named, with
// what to do.
func TestRestoreRedactsAgain(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	sent := uint64(0)
	send := func(users ...string) { // each call is a frame of its own in each lane
		var events strings.Builder
		for _, u := range users {
			fmt.Fprintf(&events, `{"user_id":%q,"message":"x"}`+"\n", u)
		}
		b.ok(events.String(), "send", "app", "--format", "ndjson")
		sent += uint64(len(users))
		b.inTheEnd(sent)
	}
	const gone, last = "gone@example.org", "last@example.org"
	others := make([]string, 64) // in all lanes
	for n := range others {
		others[n] = fmt.Sprint("p-", n)
	}
	send(gone)
	send(others...)
	send(last)
	redacted := []string{}
	for _, user := range []string{gone, last} {
		redacted = append(redacted, decoded[erasure.Proof](b, "erase", "app", "--user", user, "--yes", "-o", "json").Erasure.ID)
	}
	dest := filepath.Join(b.dir, "backups")
	b.ok("", "backup", dest)

	// As once the streams had let go of what they hold, a week later.
	newer, err := backup.DecodeLedger("the export", []byte(b.ok("", "erase", "export")))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range redacted {
		k := newer.Erasures[schemas.LedgerKey("app", id)]
		var e ledger.Erasure
		if err := json.Unmarshal(k.Value, &e); err != nil {
			t.Fatal(err)
		}
		e = erasure.Redacted(e)
		if k.Value, err = json.Marshal(&e); err != nil {
			t.Fatal(err)
		}
		k.Count++
		newer.Erasures[k.Key] = k
	}
	newer.At = newer.At.Add(time.Minute)
	text, err := newer.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file := b.write("newer.ledger", string(text))
	into := filepath.Join(t.TempDir(), "restored")
	r := b.run("", "restore", dest, "--ledger", file, "--data", into)
	if r.code != exitPartial {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	contains(t, r.err, "redacted again, since the backup has their names: 1 erasure", "almanac erase redact "+redacted[1]+" --yes", "proven: ")
	if strings.Contains(r.err, redacted[0]) {
		t.Errorf("of one that was redacted it says %s", r.err)
	}
	there := &box{t: t, dir: b.dir, env: append(append([]string(nil), b.env...), envPrefix+"DATA="+into)}
	there.up()
	for what, text := range map[string]string{"erase ls": there.ok("", "erase", "ls", "-o", "json"), "erase export": there.ok("", "erase", "export")} {
		if strings.Contains(text, gone) {
			t.Errorf("%s names %s: %s", what, gone, text)
		}
	}
	for _, user := range []string{gone, last} {
		if n := strings.TrimSpace(there.ok("", "query", "app", "--user", user, "--count", "-o", "table")); n != "0" {
			t.Errorf("%s events of %s are found", n, user)
		}
	}
	// The end of its shard is followed by others, and the remedy works.
	var more strings.Builder
	for _, u := range others {
		fmt.Fprintf(&more, `{"user_id":%q,"message":"x"}`+"\n", u)
	}
	there.ok(more.String(), "send", "app", "--format", "ndjson")
	there.ok("", "verify")
}
