package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/schemas"
)

// Who was erased, purged and redacted is named by no file of a backup that is made afterwards. Of a backup from before, whose files do name that person, a
// restore with the ledger and a redaction leave none either: neither in the streams nor in ClickHouse. Not looked at are the files of parts that ClickHouse
// rewrote, which it keeps for 8 minutes more, and those of the registry and of its copy: NATS keeps the bytes of older revisions until it compacts a file.
func TestErasedNameIsInNoFile(t *testing.T) {
	t.Parallel()
	const person = "zqohnename7"
	b := newBox(t)
	up := b.up()
	sent := 0
	next := func(names ...string) string {
		var events strings.Builder
		for n := range 400 {
			name := names[n%len(names)]
			fmt.Fprintf(&events, `{"ts":"2026-03-10T00:%02d:%02dZ","user_id":%q,"message":"%d of %s","attributes":{"by":%q}}`+"\n", n/60, n%60, name, sent+n, name, name)
		}
		sent += 400
		return events.String()
	}
	// In one message: a purge removes it whole, and leaves none that was accepted as early and names others alone, for which a redaction would wait.
	b.publish("events.app.2026-03.0", next("p-0", person, "p-2", "p-3"))
	b.inTheEnd(uint64(sent))
	named := func(dir string, but ...string) []string {
		t.Helper()
		found, files := filesWith(t, dir, person, but...)
		if files == 0 {
			t.Fatalf("%s has no files", dir)
		}
		return found
	}
	in := func(found []string, below string) bool {
		for _, f := range found {
			if strings.HasPrefix(f, below) {
				return true
			}
		}
		return false
	}
	if found := named(b.data()); !in(found, "nats/") || !in(found, "clickhouse/") { // the search finds it where it is
		t.Fatalf("before the erasure the name is in %q", found)
	}
	before, after := filepath.Join(b.dir, "before"), filepath.Join(b.dir, "after")
	b.ok("", "backup", before)
	if found := named(before); len(found) < 2 {
		t.Errorf("of the backup from before the name is in %q", found)
	}

	id := decoded[erasure.Proof](b, "erase", "app", "--user", person, "--yes", "-o", "json").Erasure.ID
	ledger := b.write("ledger", b.ok("", "erase", "export"))
	redacts := func(b *box) { // once no stream holds such an event, nor another one that was accepted as early
		t.Helper()
		b.ok(next("p-0", "p-2", "p-3"), "send", "app", "--format", "ndjson")
		b.ok("", "verify")
		embeddedtest.Eventually(t, maxWait, func() error {
			if _, err := b.try("erase", "resume", id, "--purge"); err != nil { // the last frame of a shard that grows, too, as another one follows it by then
				return err
			}
			_, err := b.try("erase", "redact", id, "--yes")
			return err
		})
	}
	redacts(b)
	b.ok("", "backup", after)
	if found := named(after); len(found) > 0 {
		t.Errorf("of the backup from after the erasure the name is in %q", found)
	}
	left := notYetGone(t, b.data())
	up.stop(syscall.SIGTERM)
	if found := named(b.data(), left...); len(found) > 0 {
		t.Errorf("of the data directory the name is in %q", found)
	}

	into := filepath.Join(t.TempDir(), "restored")
	there := &box{t: t, dir: b.dir, env: append(append([]string(nil), b.env...), envPrefix+"DATA="+into)}
	contains(t, b.run("", "restore", before, "--ledger", ledger, "--data", into).err, "carried out, since the backup does not have them: 1 erasure")
	up = there.up()
	redacts(there)
	left = notYetGone(t, into)
	up.stop(syscall.SIGTERM)
	if found := named(into, left...); len(found) > 0 {
		t.Errorf("of the restored data directory the name is in %q", found)
	}
}

// notYetGone are the directories below which what was replaced stays for a while: parts that ClickHouse rewrote, and the record of erasures in NATS.
func notYetGone(t *testing.T, data string) (dirs []string) {
	t.Helper()
	a, err := embedded.ReadAddresses(data)
	if err != nil {
		t.Fatal(err)
	}
	opts, err := clickhouse.ParseDSN(a.ClickHouseDSN)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := clickhouse.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.QueryRow(t.Context(), "SELECT groupArray(path) FROM system.parts WHERE NOT active").Scan(&dirs); err != nil {
		t.Fatal(err)
	}
	streams := filepath.Join(embedded.NATSDir(data), "jetstream", "$G", "streams")
	for _, name := range []string{schemas.KVStream, "KV_" + schemas.BucketCopies} {
		dirs = append(dirs, filepath.Join(streams, name))
	}
	return dirs
}
