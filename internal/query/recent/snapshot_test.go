package recent

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// What two read for a tailer at once is added once, in order, and what was read for a
// tailer that was restarted meanwhile is not.
func TestTailerTakesOnce(t *testing.T) {
	d := newRecentCache(&nats.Conn{})
	f := d.tailer(schemas.StreamShards, "app")
	tr := f.frameIndex(schemas.ShardSubject("app", 202611, 7))
	tr.begin(1, 1)
	tr.inStep, f.next = true, 1
	for _, pos := range []uint64{1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5} {
		if err := f.take(placedMessage(pos, int64(pos)*100, "")); err != nil {
			t.Fatalf("position %d: %v", pos, err)
		}
	}
	if got := positions(tr.above(0, 0, 1000)); len(got) != 5 || got[0] != 1 || got[4] != 5 || !tr.inStep {
		t.Errorf("the track has %v, in step %v", got, tr.inStep)
	}
	generation := f.generation
	f.clear()
	if f.generation == generation || d.metas.Load() != 0 {
		t.Errorf("generation %d after %d, %d headings", f.generation, generation, d.metas.Load())
	}
	if err := f.follow(t.Context(), nil); !errors.Is(err, errMoreThanAhead) {
		t.Errorf("a tailer that was never begun is followed: %v", err)
	}
}

// A read of one verb leaves nothing to the next, one of many does.
func TestOneVerbKeepsNothing(t *testing.T) {
	x := &Index{cache: newRecentCache(&nats.Conn{})}
	a, b := x.once(), x.once()
	if a == x || a.cache == b.cache || a.known == b.known || a.heads == b.heads || a.cache.nc != x.cache.nc {
		t.Error("two reads share what they found")
	}
	if x.follower = (&follower{}); x.once() != x {
		t.Error("a read of a following index does not go by what it keeps")
	}
}

// A query goes by a snapshot while it is young and the connection was not lost since.
func TestCached(t *testing.T) {
	nc := &nats.Conn{}
	d := newRecentCache(nc)
	now := time.Now()
	if d.cached("app", now) != nil {
		t.Error("a topic that was never asked about is cached")
	}
	f := d.tailer(schemas.StreamEvents, "app")
	if d.cached("app", now) != nil {
		t.Error("a topic is cached before its checkpoints were read")
	}
	f.snapshot.Store(&checkpoints{read: now.Add(-snapshotAge)})
	if d.cached("app", now) == nil || d.cached("app", now.Add(1)) != nil || d.cached("other", now) != nil {
		t.Errorf("at the age of %s it must be cached, and not beyond, nor another", snapshotAge)
	}
	nc.Reconnects++
	if d.cached("app", now) != nil {
		t.Error("it is cached though the connection was lost")
	}
	nc.Reconnects--
	f.clear()
	if d.cached("app", now) != nil {
		t.Error("it is cached though the tailer was restarted")
	}
	if snapshotAge >= indexLinger || snapshotAge >= HeadStaleness {
		t.Error("headings or heads are given up while a snapshot needs them")
	}
}

// Heads are gone by for as long as the caller says, those of shards without rows too,
// and by the last frame only where it was stored.
func TestHeadCache(t *testing.T) {
	var c headCache
	keys := []schemas.ShardRef{{Month: 202611, ID: 1}, {Month: 202611, ID: 2}, {Month: 202611, ID: 3}}
	last := func(pos, seq uint64) streams.Tail { return streams.Tail{Placed: schemas.Placed{Pos: pos}, Seq: seq} }
	now := time.Now()
	c.remember(keys[:2], map[schemas.Shard]schemas.Stored{1: {Rows: 10, Head: 4}}, map[schemas.Shard]streams.Tail{1: last(4, 40), 2: last(2, 20)}, now)
	if _, ok := c.all(keys, now, time.Hour, false); ok {
		t.Error("a shard that was never asked about is known")
	}
	if got, ok := c.all(keys[:2], now.Add(time.Second), time.Second, false); !ok || got[1].Head != 4 || got[2].Rows != 0 {
		t.Errorf("known are %v, %v", got, ok)
	}
	if _, ok := c.all(keys[:2], now.Add(time.Second+1), time.Second, false); ok {
		t.Error("older heads are gone by than the caller wants")
	}
	if _, ok := c.all(keys[:2], now, time.Second, true); ok {
		t.Error("a shard without rows counts as stored up to its last frame")
	}
	into := map[schemas.Shard]schemas.Stored{}
	moved := c.moved(keys[:2], map[schemas.Shard]streams.Tail{1: last(4, 40), 2: last(2, 20)}, now, into)
	if len(moved) != 1 || moved[0].ID != 2 || into[1].Head != 4 {
		t.Errorf("moved are %v, and %v not", moved, into)
	}
	if moved := c.moved(keys[:1], map[schemas.Shard]streams.Tail{1: last(5, 50)}, now, into); len(moved) != 1 {
		t.Error("a shard with another last frame did not move")
	}
}

// A frame that was not handed out, while the last one before it was asked for, is not
// passed over by the frame index that begins behind that.
func TestWholeUpToWithFollow(t *testing.T) {
	d := newRecentCache(&nats.Conn{})
	x := &Index{cache: d}
	f := d.tailer(schemas.StreamShards, "app")
	f.next, f.ended = 1, time.Now()
	subject := schemas.ShardSubject("app", 202611, 7)
	last := streams.Tail{Placed: schemas.Placed{Pos: 1}, Ref: schemas.ShardRef{Topic: "app", Month: 202611, ID: 7}, Seq: 10}
	asked := time.Now()
	if err := f.take(placedMessage(2, 200, "")); err != nil { // seq 20, read ahead
		t.Fatal(err)
	}
	x.wholeUpTo(&last, asked)
	if tr := f.indexes[subject]; tr != nil && tr.inStep {
		t.Errorf("a track from position %d on is in step without position 2", tr.from)
	}
	x.wholeUpTo(&last, time.Now())
	if tr := f.indexes[subject]; tr == nil || !tr.inStep {
		t.Error("nor does one begin when it was asked for later")
	}
}

// A floor above what was seen has the shard asked for once more, and what was asked
// before that counts no more.
func TestHeadBelowFloor(t *testing.T) {
	var c headCache
	keys := []schemas.ShardRef{{Month: 202611, ID: 1}}
	now := time.Now()
	known := func() bool { _, ok := c.all(keys, time.Now(), time.Hour, false); return ok }
	c.remember(keys, map[schemas.Shard]schemas.Stored{1: {Rows: 10, Head: 4}}, nil, now)
	if c.raise(1, 4); !known() {
		t.Error("a floor at the head has it forgotten")
	}
	if c.raise(1, 5); known() {
		t.Error("a head is gone by that lies below the floor")
	}
	if c.remember(keys, map[schemas.Shard]schemas.Stored{1: {Rows: 10, Head: 4}}, nil, now); known() {
		t.Error("what was asked before the floor rose is remembered")
	}
	c.remember(keys, map[schemas.Shard]schemas.Stored{1: {Rows: 9, Head: 4}}, nil, time.Now())
	if c.raise(1, 5); !known() {
		t.Error("a shard whose last rows are gone is asked for each time")
	}
}

// A frame index tells when it begins behind frames that its stream no longer has.
func TestIndexMissing(t *testing.T) {
	tr := testIndex(t) // 3 to 8
	if tr.missing(2) || tr.missing(5) || tr.missing(8) || tr.missing(9) {
		t.Error("nothing is missing")
	}
	tr.begin(1, 1)
	for _, pos := range []uint64{4, 5, 7} {
		if err := tr.add(placedMessage(pos, 100, "")); err != nil {
			t.Fatal(err)
		}
	}
	for floor, want := range map[uint64]bool{0: true, 2: true, 3: true, 5: true, 6: false, 7: false} {
		if tr.missing(floor) != want {
			t.Errorf("of 4, 5 and 7, above %d something is missing: %v", floor, !want)
		}
	}
}
