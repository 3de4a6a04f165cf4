package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/backup"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// backupsEnv is how many backups TestBackupWhileEventsFlow makes and restores; make backups says 20.
const backupsEnv = "ALMANAC_BACKUPS"

// flowRate is how many events a second flow where TestBackupWhileEventsFlow is run in its long form.
const flowRate = 10_000

// flowWriters are so many.
const flowWriters = 4

// block is what was sent at once, all of one person: rows events whose messages begin with its name.
type block struct {
	person      string
	rows        int
	sent, acked time.Time // acked is zero while there is no answer
}

// flow writes events while it runs, and knows of each block when it was sent and when it was acknowledged.
type flow struct {
	t     *testing.T
	rows  int           // of a block
	every time.Duration // between two blocks of a writer
	mu    sync.Mutex

	blocks map[string]*block
	acked  int             // events
	quiet  map[string]bool // persons who write no more, for they are to be erased
	rest   *sync.Cond      // of mu: resting
	idle   bool
	flowed time.Duration // for how long it did not rest
	since  time.Time
	stop   func()
}

// hush ends what a person writes.
func (f *flow) hush(person string) {
	f.mu.Lock()
	f.quiet[person] = true
	f.mu.Unlock()
	f.grown(20) // what was under way is over
}

// pause has nothing written until the function that it returns is called.
func (f *flow) pause() (resume func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle, f.flowed = true, f.flowed+time.Since(f.since)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.idle, f.since = false, time.Now()
		f.rest.Broadcast()
	}
}

// startFlow starts four writers: of one event after the other, or at flowRate.
func startFlow(t *testing.T, b *box, long bool) *flow {
	t.Helper()
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	p, err := producer.Connect(t.Context(), a.NATS, producer.Config{Topic: "app", Policy: producer.Block, Linger: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f := &flow{t: t, rows: 1, blocks: map[string]*block{}, quiet: map[string]bool{}, since: time.Now()}
	f.rest = sync.NewCond(&f.mu)
	if long {
		f.rows = 100
		f.every = time.Second * flowWriters * time.Duration(f.rows) / flowRate
	}
	var wg sync.WaitGroup
	for w := range flowWriters {
		wg.Go(func() { f.write(ctx, fmt.Sprint(w), batched(p)) })
	}
	f.stop = sync.OnceFunc(func() {
		cancel()
		f.rest.Broadcast()
		wg.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), maxWait)
		defer cancel()
		_ = p.Close(ctx)
	})
	t.Cleanup(f.stop)
	return f
}

// batched sends the events of a block as one batch of a producer.
func batched(p *producer.Producer) func(ctx context.Context, name string, o *block) error {
	return func(ctx context.Context, name string, o *block) error {
		batch := p.NewBatch("")
		err := error(nil)
		for i := 0; i < o.rows && err == nil; i++ {
			err = batch.Add(producer.Event{Message: fmt.Sprintf("%s/%d", name, i), UserID: o.person})
		}
		if err == nil {
			err = batch.Submit(ctx)
		}
		if err == nil {
			err = batch.Wait(ctx)
		}
		return err
	}
}

// write sends blocks, one at a time and so far apart at least.
func (f *flow) write(ctx context.Context, by string, send func(ctx context.Context, name string, o *block) error) {
	due := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		name, o := fmt.Sprintf("%s-%d", by, n), &block{person: fmt.Sprintf("p-%d", n%10), rows: f.rows}
		f.mu.Lock()
		quiet := f.quiet[o.person]
		f.mu.Unlock()
		if quiet {
			continue // the others write more
		}
		if due = due.Add(f.every); time.Since(due) > time.Second {
			due = time.Now() // it does not catch up on what it missed while the up was away
		}
		if backoff.Sleep(ctx, time.Until(due)) != nil {
			return
		}
		f.mu.Lock()
		for f.idle && ctx.Err() == nil {
			f.rest.Wait()
		}
		if quiet = f.quiet[o.person]; !quiet {
			o.sent = time.Now()
			f.blocks[name] = o
		}
		f.mu.Unlock()
		if quiet || send(ctx, name, o) != nil {
			continue
		}
		f.mu.Lock()
		o.acked = time.Now()
		f.acked += o.rows
		f.mu.Unlock()
	}
}

// grown waits until n more blocks were acknowledged.
func (f *flow) grown(n int) {
	f.t.Helper()
	count := func() int { f.mu.Lock(); defer f.mu.Unlock(); return f.acked / f.rows }
	from := count()
	embeddedtest.Eventually(f.t, maxWait, func() error {
		if got := count() - from; got < n {
			return fmt.Errorf("%d blocks of events of %d", got, n)
		}
		return nil
	})
}

// storedBlock is what an Almanac has of a block.
type storedBlock struct{ rows, distinct int }

// check compares what a restored Almanac has with what was acknowledged at the point in time.
func (f *flow) check(have map[string]storedBlock, point time.Time, erased map[string]bool) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	lost, late, twice, back, all, flowed := 0, 0, 0, 0, 0, f.flowed
	if !f.idle {
		flowed += time.Since(f.since)
	}
	for name, o := range f.blocks {
		n := have[name]
		all += n.rows
		twice += n.rows - n.distinct
		switch {
		case erased[o.person]:
			back += n.rows
		case !o.acked.IsZero() && o.acked.Before(point):
			lost += o.rows - n.distinct
		case o.sent.After(point):
			late += n.rows
		}
	}
	f.t.Logf("restored as of %s: %d events of %d that were acknowledged by now, at %.0f a second while they flowed", point, all, f.acked, float64(f.acked)/flowed.Seconds())
	if lost+late+twice+back > 0 || all == 0 {
		f.t.Errorf("%d that were acknowledged before are not there, %d from later are, %d are there twice, %d of erased persons", lost, late, twice, back)
	}
}

// Backups while events flow: each is restored, has what was acknowledged up to the point that it names and nothing newer, and no
// person who was erased, before it or since. A restore that is killed is run again. Between two rounds the up is killed, or its engine. In the long
// form 10,000 events a second flow, and a further router, sink, gateway and dispatcher are killed too, one after the other.
func TestBackupWhileEventsFlow(t *testing.T) {
	t.Parallel()
	rounds := 1
	long := false
	if n, err := strconv.Atoi(os.Getenv(backupsEnv)); err == nil {
		rounds, long = n, true
	}
	random := seeded(t)
	b := newBox(t, "ALMANAC_TIMERS_ALLOW_CIDRS=127.0.0.1/32:1-65535")
	address := embeddedtest.FreeAddress(t) // where the producer finds it again
	start := []string{"--profile", "test", "--nats", address}
	if long {
		start = append(start, "--events-bytes", "2GiB", "--shards-bytes", "4GiB")
	}
	up := b.up(start...)
	b.ok("", "topics", "apply", "customers", "--kind", "document")
	for n := range 5 {
		b.ok(fmt.Sprintf(`{"n":%d}`, n), "docs", "put", "customers", fmt.Sprint("c-", n))
	}
	b.ok("", "timers", "groups", "apply", "mails")
	f := startFlow(t, b, long)
	f.grown(300)
	erased := map[string]bool{}
	erase := func(person string) (id string) {
		t.Helper()
		f.hush(person)
		erased[person] = true
		return decoded[erasure.Proof](b, "erase", "app", "--user", person, "--yes", "-o", "json").Erasure.ID
	}
	erase("p-0")
	old := b.write("old", b.ok("", "erase", "export"))
	dest := filepath.Join(b.dir, "backups")
	for round := range rounds {
		switch {
		case round%2 == 1:
			if err := syscall.Kill(up.engine(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		case round > 0:
			up.stop(syscall.SIGKILL)
			up = b.up(start...)
		}
		var further *furtherParts
		if long {
			further = b.furtherParts(t, f)
		}
		b.ok("", "timers", "create", "mails", fmt.Sprint("later-", round), "--due", "+24h", "--url", "http://127.0.0.1:1/")
		f.grown(200)
		dead := b.deadLetters(t, round, long)
		first := decoded[backedUp](b, "backup", dest, "-o", "json")
		if long {
			further.kill(random, fmt.Sprint("soon-", round))
		}
		f.grown(50)
		second := decoded[backedUp](b, "backup", dest, "--keep", "2", "-o", "json")
		if second.NewBytes >= second.Bytes || !second.Point.After(first.Point) {
			t.Errorf("a second backup: %+v after %+v", second, first)
		}
		t.Logf("backup %d: %d rows; of %d bytes %d are new, %.1f %%", round, second.Rows, second.Bytes, second.NewBytes, 100*float64(second.NewBytes)/float64(second.Bytes))
		f.grown(50)
		if round < 8 {
			id := erase(fmt.Sprint("p-", 1+round))
			if long && round%2 == 0 {
				b.ok("", "erase", "resume", id, "--purge")
			}
		}
		ledger := b.data()
		if round%2 == 1 {
			ledger = b.write("ledger", b.ok("", "erase", "export"))
		}
		resume := func() {}
		if long { // else there is more to restore than there is time
			resume = f.pause()
		}
		t.Run(fmt.Sprint("restored ", round), func(t *testing.T) { // whose up ends with it
			r := b.restored(t, random, dest, ledger)
			r.compare(t, f, second.Point, erased)
			r.compareLetters(t, dead, round, long)
			r.compareTimers(t, round+1)
		})
		if t.Failed() {
			return
		}
		resume()
	}
	f.stop()
	b.damaged(t, random, dest, old)
	b.alone(t, dest)
}

// deadLetters has two messages be kept as dead letters: one without a frame, and an event that came under another month. In the long form that is sent
// again, and in each fourth round what is left is dropped. It returns the letters that are there.
func (b *box) deadLetters(t *testing.T, round int, long bool) (ids []string) {
	t.Helper()
	before := b.letterIDs(t, -1)
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(a.NATS, nats.Timeout(maxWait))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(maxWait))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	for month, text := range map[string]string{
		now.Format("2006-01"): "junk",
		now.AddDate(0, 0, 1-now.Day()).AddDate(0, 1, 0).Format("2006-01"): fmt.Sprintf(`{"message":"letter-%d/0","user_id":"letter"}`, round),
	} {
		if _, err := js.Publish(t.Context(), "events.app."+month+".0", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	ids = b.letterIDs(t, len(before)+2)
	if !long {
		return ids
	}
	if r := b.run("", "dead", "retry", "app"); r.code != exitPartial { // one cannot be sent
		t.Errorf("letters sent again: exit %d, %s%s", r.code, r.out, r.err)
	}
	if round%4 == 3 {
		b.ok("", "dead", "drop", "app", "--yes")
	}
	return b.letterIDs(t, -1)
}

// letterIDs are the dead letters of app, once they are so many; -1: as many as there are.
func (b *box) letterIDs(t *testing.T, want int) (ids []string) {
	t.Helper()
	embeddedtest.Eventually(t, maxWait, func() error {
		r := b.run("", "dead", "ls", "app", "--limit", "1000", "-o", "json")
		var letters []query.DeadLetter
		if r.code != exitOK {
			return errors.New(r.err) // its engine may be starting
		}
		if err := json.Unmarshal([]byte(r.out), &letters); err != nil {
			return err
		}
		if ids = nil; want >= 0 && len(letters) != want {
			return fmt.Errorf("%d dead letters, want %d", len(letters), want)
		}
		for i := range letters {
			ids = append(ids, letters[i].ID)
		}
		return nil
	})
	slices.Sort(ids)
	return ids
}

// compareLetters compares the dead letters of a restored Almanac with those at the backup: each has its number and time. What was sent again is there once.
func (b *box) compareLetters(t *testing.T, want []string, round int, long bool) {
	t.Helper()
	if got := b.letterIDs(t, -1); !slices.Equal(got, want) {
		t.Errorf("dead letters are %v, at the backup they were %v", got, want)
	}
	if !long {
		return
	}
	for r := range round + 1 {
		n := strings.TrimSpace(b.ok("", "sql", fmt.Sprintf("SELECT count() FROM app WHERE message = 'letter-%d/0' FORMAT TSV", r), "--wait", maxWait.String()))
		if n != "1" {
			t.Errorf("the letter of round %d, which was sent again, is there %s times", r, n)
		}
	}
}

// alone restores one topic of several.
func (b *box) alone(t *testing.T, dest string) {
	t.Helper()
	into := filepath.Join(t.TempDir(), "alone")
	if r := b.run("", "restore", dest, "--yes", "--data", into, "--topic", "nope"); r.code != exitUsage || !strings.Contains(r.err, "app, customers") {
		t.Errorf("an unknown topic: exit %d, %s", r.code, r.err)
	}
	r := b.run("", "restore", dest, "--yes", "--data", into, "--topic", "customers")
	if r.code != exitOK || strings.Contains(r.out, "app") || !strings.Contains(r.out, "customers") {
		t.Errorf("one topic alone: exit %d, %s%s", r.code, r.out, r.err)
	}
	contains(t, r.err, "of topic customers alone", "proven")
}

// restored restores the newest backup, kills that once on its way, and starts an up on it.
func (b *box) restored(t *testing.T, random *rand.Rand, dest, ledger string) *box {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	r := &box{t: t, dir: b.dir, env: append(append([]string(nil), b.env...), envPrefix+"DATA="+dir)}
	killed := r.background("restore", dest, "--ledger", ledger)
	embeddedtest.Eventually(t, maxWait, func() error {
		if _, err := os.Stat(filepath.Join(dir, "RESTORING")); err != nil {
			select {
			case <-killed.done:
				t.Fatalf("restore ended with %d: %s", killed.code, killed.stderr())
			default:
			}
			return err
		}
		return nil
	})
	timer := time.NewTimer(time.Duration(random.IntN(2500)) * time.Millisecond * time.Duration(maxWait/(3*time.Minute)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-killed.done:
	}
	killed.stop(syscall.SIGKILL)
	if _, err := os.Stat(filepath.Join(dir, "RESTORING")); err == nil { // else it was whole before it ended
		if half := r.run("", "up", "--ports", "auto"); half.code != exitFailed || !strings.Contains(half.err, "almanac restore") {
			t.Errorf("an up on what a killed restore left: exit %d, %s", half.code, half.err)
		}
		again := r.run("", "restore", dest, "--ledger", ledger)
		if again.code != exitOK {
			t.Fatalf("restore: exit %d\n%s%s", again.code, again.out, again.err)
		}
		contains(t, again.err, "proven", "as of ")
	}
	up := r.up("--profile", "test")
	t.Cleanup(func() { up.stop(syscall.SIGTERM) })
	return r
}

// compare compares a restored Almanac with the flow.
func (b *box) compare(t *testing.T, f *flow, point time.Time, erased map[string]bool) {
	t.Helper()
	have := map[string]storedBlock{}
	for line := range strings.Lines(b.ok("", "sql", "SELECT substringIndex(message, '/', 1), count(), uniqExact(message) FROM app GROUP BY 1 FORMAT TSV", "--wait", maxWait.String())) {
		var name string
		var n storedBlock
		if _, err := fmt.Sscanf(line, "%s\t%d\t%d", &name, &n.rows, &n.distinct); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		have[name] = n
	}
	f.check(have, point, erased)
	said := b.run("", "verify", "--fronts").err
	contains(t, said, "proven: ", "0 on their way, 0 differ from ClickHouse")
	var hot, cold int // in a long run they left DOCS
	if _, after, found := strings.Cut(said, "topic customers: "); !found {
		t.Errorf("customers are not in %s", said)
	} else if n, err := fmt.Sscanf(after, "%d documents in DOCS, %d that left it", &hot, &cold); n != 2 || hot+cold != 5 {
		t.Errorf("5 documents are %d in DOCS and %d that left it: %v, %s", hot, cold, err, said)
	}
	for person := range erased {
		if n := strings.TrimSpace(b.ok("", "query", "app", "--user", person, "--count", "-o", "table")); n != "0" {
			t.Errorf("%s was erased, and %s events are found", person, n)
		}
	}
}

// damaged flips bits in files of a backup: each is found and named, and nothing is restored. Nor is it with a ledger from before.
func (b *box) damaged(t *testing.T, random *rand.Rand, dest, old string) {
	t.Helper()
	into := filepath.Join(t.TempDir(), "x")
	restore := func(args ...string) result {
		return b.run("", append([]string{"restore", dest, "--data", into}, args...)...)
	}
	if r := restore(); r.code != exitUsage || !strings.Contains(r.err, "--ledger") {
		t.Errorf("without a ledger: exit %d, %s", r.code, r.err)
	}
	if r := restore("--ledger", old); r.code != exitUsage || !strings.Contains(r.err, "--ledger "+old) {
		t.Errorf("with an old ledger: exit %d, %s", r.code, r.err)
	}
	if r := restore("--yes", "--data", b.data()); r.code != exitFailed || !strings.Contains(r.err, "in use") {
		t.Errorf("into the directory of an up that runs: exit %d, %s", r.code, r.err)
	}
	names, err := filepath.Glob(filepath.Join(dest, "*.backup"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	newest := names[len(names)-1]
	manifest, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	files := []string{newest}
	objects, err := filepath.Glob(filepath.Join(dest, "objects", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range objects {
		if strings.Contains(string(manifest), filepath.Base(path)) {
			files = append(files, path)
		}
	}
	for n := range 4 {
		path := files[0]
		if n > 0 {
			path = files[1+random.IntN(len(files)-1)]
		}
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		replace := func(data []byte) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		bad := append([]byte(nil), was...)
		if len(bad) == 0 {
			continue
		}
		bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
		replace(bad)
		if r := restore("--yes"); r.code != exitFailed || !strings.Contains(r.err, filepath.Base(path)) {
			t.Errorf("a bit of %s: exit %d, %s", path, r.code, r.err)
		} else if hint := "almanac restore " + names[0]; n == 0 && len(names) > 1 && !strings.Contains(r.err, hint) {
			t.Errorf("not said: %s; %s", hint, r.err)
		}
		replace(was[:len(was)-1])
		if r := restore("--yes"); r.code != exitFailed || !strings.Contains(r.err, filepath.Base(path)) {
			t.Errorf("%s without its last byte: exit %d, %s", path, r.code, r.err)
		}
		replace(was)
	}
	if _, err := os.Stat(into); err == nil {
		t.Error("something was restored")
	}
	oldest := filepath.Base(names[0])
	point, err := time.Parse("20060102T150405.000000000Z", strings.TrimSuffix(oldest, backup.Suffix))
	if err != nil {
		t.Fatal(err)
	}
	if r := b.run("", "restore", dest, "--check", "--until", point.Add(time.Millisecond).Format(time.RFC3339Nano)); r.code != exitOK || !strings.Contains(r.err, oldest) {
		t.Errorf("until after the oldest, which is %s: exit %d, %s", oldest, r.code, r.err)
	}
	if r := b.run("", "restore", dest, "--check", "--until", point.Add(-time.Millisecond).Format(time.RFC3339Nano)); r.code != exitUsage || !strings.Contains(r.err, oldest) {
		t.Errorf("until before the oldest: exit %d, %s", r.code, r.err)
	}
	b.ok("", "restore", dest, "--check")
}

// A backup goes into empty servers that are named, once, and into no others.
func TestRestoreIntoServers(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	up := b.up()
	b.ok(lines(500), "send", "app")
	b.inTheEnd(500)
	dest, files := filepath.Join(b.dir, "backups"), filepath.Join(b.dir, "files")
	b.ok("", "backup", dest)
	if code := up.stop(syscall.SIGTERM); code != exitOK {
		t.Errorf("up ended with %d", code)
	}
	srv := embeddedtest.Start(t)
	// As where the engine has its backups elsewhere, and this machine has that directory too.
	if err := os.Symlink(srv.Engine.BackupsDir(), files); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(srv.Engine.BackupsDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	servers := []string{"--nats", srv.NATSURL, "--clickhouse", srv.HTTPDSN()}
	restore := func(args ...string) result {
		return b.run("", append(append([]string{"restore", dest, "--yes", "--events-bytes", "64MiB", "--shards-bytes", "64MiB"}, servers...), args...)...)
	}
	if r := restore(); r.code != exitUsage || !strings.Contains(r.err, "--clickhouse-files") {
		t.Errorf("without the engine's directory: exit %d, %s", r.code, r.err)
	}
	if r := b.run("", "restore", dest, "--yes", "--nats", srv.NATSURL); r.code != exitUsage {
		t.Errorf("with one server: exit %d, %s", r.code, r.err)
	}
	mark := "`" + schemas.RestoringDatabase(srv.Database) + "`"
	if _, err := srv.SQL().ExecContext(t.Context(), "CREATE DATABASE "+mark+" COMMENT 'other.backup'"); err != nil {
		t.Fatal(err)
	}
	if r := restore("--clickhouse-files", files); r.code != exitFailed || !strings.Contains(r.err, "a restore of other.backup was begun there") {
		t.Errorf("where another backup was half restored: exit %d, %s", r.code, r.err)
	}
	if _, err := srv.SQL().ExecContext(t.Context(), "DROP DATABASE "+mark+" SYNC"); err != nil {
		t.Fatal(err)
	}
	r := restore("--clickhouse-files", files)
	if r.code != exitOK {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	contains(t, r.err, "proven", "as of ", "erasures are known until")
	if again := restore("--clickhouse-files", files); again.code != exitFailed || !strings.Contains(again.err, "not empty") {
		t.Errorf("a second time: exit %d, %s", again.code, again.err)
	}
	if n := strings.TrimSpace(b.ok("", append([]string{"query", "app", "--count", "-o", "table"}, servers...)...)); n != "500" {
		t.Errorf("%s events are found", n)
	}
}
