package recent

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
)

// placedMessage is a frame of SHARDS at pos, with events from ts to ts+9.
func placedMessage(pos uint64, ts int64, cleared string) *message {
	p := schemas.Placed{Frame: schemas.Frame{Rows: 10, RawBytes: 100, MinTs: ts, MaxTs: ts + 9, Schema: 1}, Pos: pos, ShardRows: 10 * pos, SourceSeq: 1000 + pos, Cleared: cleared}
	h := nats.Header{}
	p.SetHeaders(h)
	return &message{subject: schemas.ShardSubject("app", 202611, 7), header: h, seq: 10 * pos, bytes: 50}
}

func testIndex(t *testing.T) *frameIndex {
	d := &recentCache{tailers: map[place]*tailer{}}
	tr := &frameIndex{place: place{schemas.StreamShards, schemas.ShardSubject("app", 202611, 7)}, cache: d}
	tr.begin(3, 1)
	for pos := uint64(1); pos <= 8; pos++ {
		if err := tr.add(placedMessage(pos, int64(pos)*100, "")); err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

func positions(frames []Meta) (out []uint64) {
	for _, f := range frames {
		out = append(out, f.key)
	}
	return out
}

func TestIndexAbove(t *testing.T) {
	tr := testIndex(t)
	for _, c := range []struct {
		floor  uint64
		lo, hi int64
		want   []uint64
	}{
		{0, 0, 1000, []uint64{3, 4, 5, 6, 7, 8}}, // 1 and 2 lie before its beginning
		{5, 0, 1000, []uint64{6, 7, 8}},
		{8, 0, 1000, nil},
		{2, 409, 600, []uint64{4, 5, 6}}, // both ends of a frame count
		{2, 410, 499, nil},
	} {
		got := positions(tr.above(c.floor, c.lo, c.hi))
		if len(got) != len(c.want) {
			t.Errorf("above %d, %d to %d: %v, want %v", c.floor, c.lo, c.hi, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("above %d, %d to %d: %v, want %v", c.floor, c.lo, c.hi, got, c.want)
			}
		}
	}
}

// What a query saw stored stays for those that began before it, and goes later;
// then the frame index says that it no longer reaches so far back.
func TestIndexForgetsLate(t *testing.T) {
	tr := testIndex(t)
	now := time.Now()
	tr.passed(5, now)
	if tr.from != 3 || len(tr.metas) != 6 {
		t.Fatalf("it begins at %d with %d headings, want 3 and 6", tr.from, len(tr.metas))
	}
	tr.passed(7, now.Add(indexLinger/2))
	tr.passed(7, now.Add(indexLinger))
	if tr.from != 6 || len(tr.metas) != 3 || tr.cache.metas.Load() != 3 {
		t.Fatalf("it begins at %d with %d headings, want 6 and 3", tr.from, len(tr.metas))
	}
	tr.clear()
	if tr.cache.metas.Load() != 0 {
		t.Fatalf("%d headings are counted, want none", tr.cache.metas.Load())
	}
}

func TestIndexRefuses(t *testing.T) {
	tr := testIndex(t)
	if err := tr.add(placedMessage(8, 800, schemas.ClearedDropped)); err != nil || len(tr.metas) != 6 {
		t.Errorf("a mark in the place of the last frame: %v, %d headings", err, len(tr.metas))
	}
	if err := tr.add(placedMessage(8, 800, "")); !errors.Is(err, errUntracked) {
		t.Errorf("a position that stands twice: %v", err)
	}
	tr.cache.metas.Store(MaxFrames)
	if err := tr.add(placedMessage(9, 900, "")); !errors.Is(err, errUntracked) || tr.cache.metas.Load() != MaxFrames {
		t.Errorf("one heading too many: %v", err)
	}
}

func TestCacheKeepsTheNewest(t *testing.T) {
	d := &recentCache{}
	var kept []int
	slots := make([]func() bool, 40)
	for i := range slots {
		k := d.keep(Frame{Payload: make([]byte, 1<<20)})
		slots[i] = func() bool { return k.Load() != nil }
	}
	for i, held := range slots {
		if held() {
			kept = append(kept, i)
		}
	}
	if len(kept) != keptBytes>>20-1 || kept[len(kept)-1] != len(slots)-1 || d.bytes > keptBytes {
		t.Errorf("kept are %v, %d bytes", kept, d.bytes)
	}
	d.forget()
	if d.bytes != 0 || slots[len(slots)-1]() {
		t.Errorf("%d bytes are kept after it forgot", d.bytes)
	}
}

// A frame index that was left before the end goes on there, unless it does not reach back.
func TestIndexReach(t *testing.T) {
	tr := testIndex(t)
	next := tr.next
	if tr.reach(4); tr.next != next || tr.from != 3 || len(tr.metas) != 6 {
		t.Errorf("from %d it goes on at %d with %d frames, want %d and all 6", tr.from, tr.next, len(tr.metas), next)
	}
	if tr.reach(2); tr.next != 2 || tr.from != 2 || len(tr.metas) != 0 {
		t.Errorf("one that begins at 3 is used from 2 on: from %d, next %d, %d frames", tr.from, tr.next, len(tr.metas))
	}
	tr.clear()
	if tr.reach(7); tr.next != 7 || tr.from != 7 {
		t.Errorf("an empty one begins at %d, from %d", tr.next, tr.from)
	}
}
