package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backup"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// backupLargeEnv is how many rows TestBackupLarge has; make backup-large says 10,000,000.
const backupLargeEnv = "ALMANAC_BACKUP_LARGE"

// maxNewBytes is how much a second backup may take of the first one's bytes, where a hundredth of the rows are new.
const maxNewBytes = 0.05

// A backup of many rows, a second one with a hundredth of them new, and the restore of that, into a directory of its own. The figures are printed.
// A shard has a fiftieth of the rows, so that most are closed, as in a topic that is large beside the rows at which its shards rotate: what ClickHouse merges
// in those that are open is new to a backup.
func TestBackupLarge(t *testing.T) {
	t.Parallel()
	rows, err := strconv.Atoi(os.Getenv(backupLargeEnv))
	if err != nil {
		t.Skip(backupLargeEnv + " says how many rows; make backup-large sets it")
	}
	b := newBox(t)
	up := b.up("--events-bytes", "4GiB", "--shards-bytes", "8GiB")
	b.ok("", "topics", "apply", "app", "--rotate-rows", strconv.Itoa(rows/50))
	began := time.Now()
	b.many(0, rows)
	t.Logf("%d rows were sent and stored in %s", rows, time.Since(began).Round(time.Second))
	dest := filepath.Join(b.dir, "backups")
	first := decoded[backedUp](b, "backup", dest, "-o", "json")
	t.Logf("the first backup: %d rows, %d bytes, %.1f s", first.Rows, first.Bytes, first.Seconds)
	more := rows / 100
	b.many(rows, more)
	b.swept()
	second := decoded[backedUp](b, "backup", dest, "-o", "json")
	share := float64(second.NewBytes) / float64(first.Bytes)
	t.Logf("the second backup, with %d rows more: %d bytes, of which %d are new, %.2f %% of the first one's, %.1f s", more, second.Bytes, second.NewBytes, 100*share, second.Seconds)
	newBytes(t, dest)
	if share > maxNewBytes {
		t.Errorf("a second backup with a hundredth of the rows new takes %.2f %% of the first one's bytes, more than %.0f %%", 100*share, 100*maxNewBytes)
	}
	ledger := b.write("ledger", b.ok("", "erase", "export"))
	if code := up.stop(syscall.SIGTERM); code != exitOK {
		t.Fatalf("up ended with %d: %s", code, up.stderr())
	}
	there := &box{t: t, dir: b.dir, env: append(append([]string(nil), b.env...), envPrefix+"DATA="+filepath.Join(b.dir, "restored"))}
	began = time.Now()
	r := there.run("", "restore", dest, "--ledger", ledger)
	took := time.Since(began)
	if r.code != exitOK {
		t.Fatalf("restore: exit %d, %s%s", r.code, r.out, r.err)
	}
	contains(t, r.err, "proven: ")
	for line := range strings.Lines(r.err) {
		if strings.Contains(line, "rows/s") {
			t.Log(strings.TrimSpace(line))
		}
	}
	t.Logf("from its start to its proof: %d rows in %s, %.0f rows/s", rows+more, took.Round(time.Millisecond), float64(rows+more)/took.Seconds())
	there.up("--events-bytes", "4GiB", "--shards-bytes", "8GiB")
	if n, want := strings.TrimSpace(there.ok("", "sql", "SELECT count(), uniqExact(message) FROM app FORMAT TSV")), fmt.Sprintf("%d\t%[1]d", rows+more); n != want {
		t.Errorf("restored are %q rows and distinct messages, want %q", n, want)
	}
}

// swept waits until a janitor has taken from SHARDS all but the last checkpoint of each lane. Most of them lie between frames that
// the backup before has, so a second backup without such a round would be smaller than one of an Almanac that runs.
func (b *box) swept() {
	b.t.Helper()
	js, err := jetstream.New(b.connect(), jetstream.WithDefaultTimeout(maxWait))
	if err != nil {
		b.t.Fatal(err)
	}
	embeddedtest.Eventually(b.t, maxWait, func() error {
		subjects, err := streams.Subjects(b.t.Context(), js, schemas.StreamShards, schemas.SubjectsRouted)
		for subject, n := range subjects {
			if n > 1 {
				return fmt.Errorf("%s has %d checkpoints", subject, n)
			}
		}
		return err
	})
}

// newBytes logs which parts of the newest backup the one before does not have.
func newBytes(t *testing.T, dest string) {
	t.Helper()
	store := backup.ReadStore(backup.Directory(dest))
	names, err := store.Manifests(t.Context())
	if err != nil || len(names) < 2 {
		t.Fatalf("backups %v: %v", names, err)
	}
	had, of := map[string]bool{}, map[string]int64{}
	for i, name := range names[len(names)-2:] {
		m, err := store.Manifest(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		_ = m.Objects(func(what string, o backup.Object) error {
			if part, _, _ := strings.Cut(what, ":"); i > 0 && !had[o.SHA256] {
				of[part] += o.Size
			}
			had[o.SHA256] = true
			return nil
		})
	}
	for _, part := range slices.Sorted(maps.Keys(of)) {
		t.Logf("new of %s: %d bytes", part, of[part])
	}
}

// many sends n events whose numbers begin with from, by the batch, and waits until they are stored.
func (b *box) many(from, n int) {
	b.t.Helper()
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), maxWait)
	defer cancel()
	p, err := producer.Connect(ctx, a.NATS, producer.Config{Topic: "app", Service: "shop", Policy: producer.Block})
	if err != nil {
		b.t.Fatal(err)
	}
	paths := []string{"/cart", "/checkout", "/search", "/login", "/items"}
	for i := from; i < from+n; i++ {
		mixed := uint64(i) * 0x9E3779B97F4A7C15 // the same rows each time, and not in an order that compresses them away
		p.Log(producer.Event{
			Type: "request", UserID: fmt.Sprintf("u-%d", mixed>>44), Message: fmt.Sprintf("%s/%d took %d µs", paths[mixed%5], i, mixed>>40&0xFFFF),
		})
	}
	if err := p.Flush(ctx); err != nil {
		b.t.Fatal(err)
	}
	if s := p.Stats(); len(s.Dropped) > 0 {
		b.t.Fatalf("events were dropped: %v", s.Dropped)
	}
	if err := p.Close(ctx); err != nil {
		b.t.Fatal(err)
	}
	b.inTheEnd(uint64(from + n))
}
