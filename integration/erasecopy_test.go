package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/sql"
)

// ClickHouse is restored from an older copy: rows that were erased come back with it,
// verify says so, and the erasure taken up again takes them out without counting
// them twice. Or the copy lacks rows: the sink stores what is missing and leaves
// out what was erased, also where nothing else was in an insert.
func TestEraseAndAnOlderCopy(t *testing.T) {
	t.Parallel()
	topic := oneLane("app", 100_000)
	e := start(t, topic)
	e.router()
	stop := e.sink()
	p := e.producer("app", wholeFrames)
	n := 0
	send := func(user string, times int) {
		t.Helper()
		for range times {
			p.Log(producer.Event{Time: feb(n, 1000), UserID: user, Message: fmt.Sprint(n)})
			n++
		}
		e.flush(p)
		e.stored("app", uint64(n), 30*time.Second) // an insert of its own
	}
	for range 3 {
		send("u-1", 20)
		send("u-7", 10)
	}
	shard := e.shards("app")[0]
	exec := func(format string, args ...any) {
		t.Helper()
		if err := e.hand.Conn().Exec(t.Context(), fmt.Sprintf(format, args...)); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE %s.Copy AS %s", sql.QuoteName(e.srv.Database), e.table("app"))
	exec("INSERT INTO %s.Copy SELECT * FROM %s", sql.QuoteName(e.srv.Database), e.table("app"))

	job := e.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}})
	entry, err := e.reg.Shard(t.Context(), shard.Ref())
	if err != nil || job.Rows != 30 || entry.Floor == 0 {
		t.Fatalf("%+v, floor %d (%v): the user's rows alone carried the head", job, entry.Floor, err)
	}
	e.verify(90)
	stop()

	t.Run("with rows", func(t *testing.T) {
		exec("ALTER TABLE %s REPLACE PARTITION ID '%s' FROM %s.Copy", e.table("app"), schemas.PartitionID(shard.Month, shard.ID), sql.QuoteName(e.srv.Database))
		rep, err := e.proof("app")
		if err != nil || rep.OK() || rep.Doubled != 30 {
			t.Fatalf("verify of rows that came back: %+v (%v)", rep, err)
		}
		again, err := e.eraser().Run(t.Context(), "app", job.ID)
		if err != nil || again.Rows != 30 {
			t.Fatalf("%+v, %v", again, err)
		}
		e.verify(90)
	})
	t.Run("without rows", func(t *testing.T) {
		// As if nothing had been stored yet: no rows, no tokens, and a floor that says
		// there were.
		exec("ALTER TABLE %s DROP PARTITION ID '%s'", e.table("app"), schemas.PartitionID(shard.Month, shard.ID))
		defer e.sink(func(c *sinkConfig) { c.BatchRows = 1 })() // a frame an insert
		e.stored("app", 60, 30*time.Second)
		eventually(t, 30*time.Second, func() error {
			now, err := e.reg.Shard(t.Context(), shard.Ref())
			if err == nil && now.Floor < 6 {
				err = fmt.Errorf("the floor is %d, want 6", now.Floor)
			}
			return err
		})
		if got := e.count("SELECT countIf(user_id = 'u-7') FROM %s", e.table("app")); got != 0 {
			t.Errorf("the sink brought %d rows back", got)
		}
		e.verify(90)
	})
}

// ClickHouse loses its rows between two passes of an erasure, and sinks store them again with what the erasure means: it ends
// only after that, without a row of it.
func TestEraseWhileClickHouseGoesBack(t *testing.T) {
	t.Parallel()
	e := start(t, oneLane("app", 100_000))
	e.router()
	stop := e.sink()
	p := e.producer("app", wholeFrames)
	for n := range 30 {
		p.Log(producer.Event{Time: feb(n, 1000), UserID: []string{"u-7", "u-1", "u-2"}[n%3], Message: fmt.Sprint(n)})
	}
	e.flush(p)
	e.stored("app", 30, 30*time.Second)
	stop()
	var lost, back sync.Once
	gone := make(chan struct{})
	x := e.eraser(func(c *erasure.Config) {
		c.Crash = func(point string) {
			if point == "erase.before-book" {
				lost.Do(func() { e.exec("TRUNCATE TABLE %s", e.table("app")); close(gone) })
			}
		}
		c.Progress = func(p erasure.Progress) {
			select {
			case <-gone:
				if p.Pending > 0 {
					back.Do(func() { e.sink() })
				}
			default:
			}
		}
	})
	job, err := x.Start(t.Context(), erasure.Request{Topic: "app", Users: []string{"u-7"}})
	if err != nil {
		t.Fatal(err)
	}
	if job, err = x.Run(t.Context(), "app", job.ID); err != nil || job.State != ledger.Erased || job.Rows != 10 {
		t.Fatalf("%+v, %v; want 10 rows", job, err)
	}
	if rows, theirs := e.count("SELECT count() FROM %s", e.table("app")), e.count("SELECT countIf(user_id = 'u-7') FROM %s", e.table("app")); rows != 20 || theirs != 0 {
		t.Errorf("it ended with %d rows, %d of them the user's, want 20 and none", rows, theirs)
	}
	e.verify(30)
}

// An erasure is carried out again in a closed shard of which ClickHouse, from an older copy, lacks rows: the entry states what the
// shard is to have, and so it does once sinks have stored the rest again.
func TestEraseInAClosedShardThatLacksRows(t *testing.T) {
	t.Parallel()
	e := start(t, oneLane("app", 60))
	e.router()
	stop := e.sink()
	p := e.producer("app", wholeFrames)
	for range 3 { // the third is of the next shard
		for n := range 30 {
			p.Log(producer.Event{Time: feb(n, 1000), UserID: []string{"u-7", "u-1", "u-2"}[n%3], Message: fmt.Sprint(n)})
		}
		e.flush(p)
	}
	e.stored("app", 90, 30*time.Second)
	shards := e.closed("app", 30*time.Second)
	closed := shards[slices.IndexFunc(shards, func(s registry.Shard) bool { return s.Status == registry.Closed })]
	older := sql.QuotedTable(e.srv.Database, "Older")
	e.exec("CREATE TABLE %s AS %s", older, e.table("app"))
	e.exec("INSERT INTO %s SELECT * FROM %s WHERE pos = 1", older, e.table("app"))
	job := e.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}})
	stop()
	e.exec("ALTER TABLE %s REPLACE PARTITION ID '%s' FROM %s", e.table("app"), schemas.PartitionID(closed.Month, closed.ID), older)
	if _, err := e.eraser().Run(t.Context(), "app", job.ID); err != nil {
		t.Fatal(err)
	}
	if now, err := e.reg.Shard(t.Context(), closed.Ref()); err != nil || now.Rows != 40 {
		t.Errorf("the entry says %d rows (%v), want 40", now.Rows, err)
	}
	e.sink()
	e.stored("app", 60, 30*time.Second)
	e.verify(90)
}

// ClickHouse is restored from an older copy while an erasure is purged: the frames that it lacks stay in SHARDS, and the purge
// goes on once they are stored again.
func TestPurgeWhileClickHouseGoesBack(t *testing.T) {
	t.Parallel()
	e := start(t, oneLane("app", 100_000))
	e.router()
	stop := e.sink()
	p := e.producer("app", wholeFrames)
	for range 4 {
		for n := range 30 {
			user := "u-1"
			if n%3 == 0 {
				user = "u-7"
			}
			p.Log(producer.Event{Time: feb(n, 1000), UserID: user, Message: fmt.Sprint(n)})
		}
		e.flush(p)
	}
	e.stored("app", 120, 30*time.Second)
	shard := e.shards("app")[0]
	job := e.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}})
	stop()
	older := sql.QuotedTable(e.srv.Database, "Older")
	e.exec("CREATE TABLE %s AS %s", older, e.table("app"))
	e.exec("INSERT INTO %s SELECT * FROM %s WHERE pos = 1", older, e.table("app"))
	frames := len(e.messages(schemas.StreamShards, shard.Ref().Subject()))
	x := e.eraser(func(c *erasure.Config) {
		c.Crash = func(point string) {
			if point == "erase.before-purge" {
				e.exec("ALTER TABLE %s REPLACE PARTITION ID '%s' FROM %s", e.table("app"), schemas.PartitionID(shard.Month, shard.ID), older)
			}
		}
	})
	if _, err := x.Purge(t.Context(), "app", job.ID); !errors.Is(err, erasure.ErrUnstored) {
		t.Errorf("purged while ClickHouse went back: %v", err)
	}
	if left := len(e.messages(schemas.StreamShards, shard.Ref().Subject())); left != frames {
		t.Errorf("%d of %d frames are left, and ClickHouse has the rows of one", left, frames)
	}
	e.sink()
	e.stored("app", 80, 30*time.Second)
	if job, err := e.eraser().Purge(t.Context(), "app", job.ID); err != nil || job.Purged.Frames != 3 {
		t.Errorf("purged %+v (%v), want 3 frames: the last one stays", job.Purged, err)
	}
	e.verify(120)
}

// An insert that takes frames from both sides of the fence loses the rows from
// before it alone. What the erasure leaves in the streams is purged, and then
// neither stream has a byte of it; what shared a frame is where it was.
func TestEraseAtTheFenceAndPurge(t *testing.T) {
	t.Parallel()
	e := start(t, oneLane("app", 60))
	e.router()
	p := e.producer("app", wholeFrames)
	log := func(user string, times int) {
		for range times {
			p.Log(producer.Event{Time: feb(7, 1000), UserID: user, Message: "secret of " + user})
		}
		e.flush(p)
	}
	log("u-1", 40)
	log("u-7", 5)
	log("u-1", 30) // the shard is full: another
	log("u-7", 5)
	e.publish("events.app.2026-02.0", `{"ts":"2026-03-01T00:00:00Z","user_id":"u-7","message":"secret of u-7, of another month"}`)
	x := e.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: "app", Users: []string{"u-7"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := e.found("app", "user_id = 'u-7'"); got != 0 {
		t.Errorf("%d fresh events are found", got)
	}
	log("u-7", 3)
	if got := e.found("app", "user_id = 'u-7'"); got != 3 {
		t.Errorf("%d of the 3 events behind the fence are found", got)
	}
	e.routed("app", 84)
	e.sink() // only now: what is routed of a shard goes in one insert
	if job, err = x.Run(t.Context(), "app", job.ID); err != nil || job.Rows != 10 {
		t.Fatalf("%+v, %v; want 10 rows", job, err)
	}
	e.stored("app", 73, 10*time.Second)
	if got := e.count("SELECT countIf(user_id = 'u-7') FROM %s", e.table("app")); got != 3 {
		t.Errorf("%d of the 3 rows behind the fence are left", got)
	}
	e.verify(84)
	log("u-2", 1) // so that the last frames are of another person
	e.stored("app", 74, 10*time.Second)
	for range 2 { // it may be done again
		if job, err = x.Purge(t.Context(), "app", job.ID); err != nil {
			t.Fatal(err)
		}
	}
	if job.Purged.Erased != 10 || job.Purged.Frames != 2 || job.Purged.Events != 3 || job.Purged.Dead != 1 {
		t.Errorf("purged %+v, want the 10 events in 2 frames, 3 messages of EVENTS and a dead letter", *job.Purged)
	}
	if left := e.messages(schemas.StreamShards, schemas.DeadSubject("app")); len(left) != 0 {
		t.Errorf("%d dead letters are left", len(left))
	}
	for _, in := range [][2]string{{schemas.StreamShards, schemas.ShardsFilter("app")}, {schemas.StreamEvents, schemas.TopicFilter("app")}} {
		var r frame.Reader
		topic := oneLane("app", 60)
		topic, _ = topic.Declared()
		had := 0
		for _, msg := range e.messages(in[0], in[1]) {
			if err := r.Open(msg.Data, &topic, 1); err != nil {
				t.Fatal(err)
			}
			had += strings.Count(string(r.Raw()), "secret of u-7")
		}
		if had != 3 {
			t.Errorf("%s has %d events of the user, want the 3 behind the fence", in[0], had)
		}
	}
	if rep := e.verify(85); rep.Dead != 0 || rep.Discarded != 1 {
		t.Errorf("the purged dead letter is not booked: %+v", rep.Totals)
	}
	if proof, err := x.Show(t.Context(), "app", job.ID); err != nil || proof.Matching != 0 || len(proof.Shards) != 2 {
		t.Errorf("%+v, %v", proof, err)
	}
	// Frames of its time are still there: the entry is kept, unless forced.
	if err := x.Forget(t.Context(), "app", job.ID, false); !errors.Is(err, erasure.ErrStillThere) {
		t.Errorf("forgotten while the streams hold frames of its time: %v", err)
	}
	if err := x.Forget(t.Context(), "app", job.ID, true); err != nil {
		t.Error(err)
	}
	if _, err := x.Find(t.Context(), job.ID); !errors.Is(err, erasure.ErrRequest) {
		t.Errorf("it was forgotten: %v", err)
	}
	if got := e.found("app", "user_id = 'u-7'"); got != 3 {
		t.Errorf("%d events are found after it was forgotten, want the 3 behind the fence", got)
	}
	if rep := e.verify(85); rep.Erased != 10 {
		t.Errorf("forgotten: %+v", rep.Totals)
	}
}
