package router

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

func TestFull(t *testing.T) {
	at := func(pos, rows, bytes uint64) *shardState {
		return &shardState{tail: tail{pos: pos, rows: rows, bytes: bytes}}
	}
	r := schemas.Rotation{Rows: 100, Bytes: 1000, Span: 50}
	for name, c := range map[string]struct {
		r       schemas.Rotation
		s       *shardState
		top, hi int64
		want    string
	}{
		"empty":            {r, at(0, 0, 0), 0, 500, ""},
		"below":            {r, at(1, 99, 999), 20, 49, ""},
		"rows":             {r, at(1, 100, 0), 20, 20, "rows"},
		"bytes":            {r, at(1, 1, 1000), 20, 20, "bytes"},
		"rows before span": {r, at(1, 100, 1000), 20, 500, "rows"},
		"a later span":     {r, at(1, 1, 1), 49, 50, "span"},
		"a late event":     {r, at(1, 1, 1), 500, 10, ""},
		"all off":          {schemas.Rotation{}, at(9, 1e9, 1e9), 0, 1e9, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := full(c.r, c.s, c.top, c.hi); got != c.want {
				t.Errorf("%s: got %q, want %q", name, got, c.want)
			}
		})
	}
}

// Events that come out of order over some spans make a shard of each span, and not one of each batch.
func TestLateEventsMakeFewShards(t *testing.T) {
	const span, spans, batches = 3600, 24, 2000
	r := schemas.Rotation{Span: span}
	random := rand.New(rand.NewPCG(1, 2))
	for name, order := range map[string]func(i int) int64{
		"in order":     func(i int) int64 { return int64(i) * span * spans / batches },
		"alternating":  func(i int) int64 { return int64(i%2) * span * (spans - 1) },
		"at random":    func(int) int64 { return random.Int64N(span * spans) },
		"backwards":    func(i int) int64 { return int64(batches-i) * span * spans / batches },
		"a day behind": func(i int) int64 { return int64(i%2)*span*spans/2 + int64(i)*span*spans/2/batches },
	} {
		t.Run(name, func(t *testing.T) {
			shards, s, top := 1, &shardState{}, int64(-1)
			for i := range batches {
				hi := order(i)
				if full(r, s, top, hi) != "" {
					shards, s, top = shards+1, &shardState{}, -1
				}
				s.tail.pos, top = s.tail.pos+1, max(top, hi)
			}
			if shards > spans+1 {
				t.Errorf("%s: %d shards of %d batches over %d spans", name, shards, batches, spans)
			}
		})
	}
}

// Frames of a batch are numbered in a row, name each other, and only the first
// of a shard carries an expectation.
func TestBatchNumbersFrames(t *testing.T) {
	b := newBatch()
	s := &shardState{entry: registry.Shard{Topic: "app", Month: 202611, ID: 1}, tail: tail{pos: 7, seq: 40, digest: "before", rows: 100, bytes: 5, ids: 1000}}
	one, two := make([]byte, 20), make([]byte, 30)
	one[0], two[0] = 1, 2
	b.frame(s, routedFrame{schemas.Frame{Rows: 3, Schema: 1, MinTs: 50, MaxTs: 60}, one, 5}, &message{seq: 11, stored: time.Unix(0, 99)}, 0, 2)
	b.frame(s, routedFrame{schemas.Frame{Rows: 4, Schema: 1, MinTs: 10, MaxTs: 55}, two, 7}, &message{seq: 12, stored: time.Unix(0, 99)}, 0, 2)
	for i, want := range []schemas.Placed{
		{Pos: 8, SourceSeq: 11, SourceTime: 99, SourceEra: 2, Prev: "before", ShardRows: 103, ShardBytes: 25, ShardIDs: 1005},
		{Pos: 9, SourceSeq: 12, SourceTime: 99, SourceEra: 2, Prev: schemas.Digest(one), ShardRows: 107, ShardBytes: 55, ShardIDs: 1012},
	} {
		got, err := schemas.ParsePlaced(b.msgs[i].Header)
		if err != nil {
			t.Fatal(err)
		}
		if got.Pos != want.Pos || got.SourceSeq != want.SourceSeq || got.SourceTime != want.SourceTime || got.SourceEra != want.SourceEra || got.Prev != want.Prev || got.ShardRows != want.ShardRows || got.ShardBytes != want.ShardBytes || got.ShardIDs != want.ShardIDs {
			t.Errorf("frame %d: got %+v, want %+v", i, got, want)
		}
	}
	if got := b.msgs[0].Header.Get(jetstream.ExpectedLastSubjSeqHeader); got != "40" {
		t.Errorf("the first frame expects %q, want 40", got)
	}
	if got, ok := b.msgs[1].Header[jetstream.ExpectedLastSubjSeqHeader]; ok {
		t.Errorf("the second frame expects %q, want nothing", got)
	}
	if c := b.touched[1]; c.lo != 10 || c.hi != 60 || c.last != 1 {
		t.Errorf("the shard was touched from %d to %d, last by %d", c.lo, c.hi, c.last)
	}
}
