package query

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// What waits is as old as its frames are, however many shards a process finds behind when it starts: what one report does not look at,
// the next ones do, and nothing is taken for new.
func TestOldestOfManyShards(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	js, err := jetstream.New(srv.NC())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), schemas.ShardsStream(schemas.StreamLimits{ShardsBytes: 64 << 20, Replicas: 1})); err != nil {
		t.Fatal(err)
	}
	const shards, frames = 2*maxLooks + 3, 3
	first := map[schemas.ShardRef]time.Time{} // when the first that is not stored came
	heads := map[schemas.Shard]uint64{}
	var left []streams.Tail
	for n := range shards {
		ref := schemas.ShardRef{Topic: "app", Month: schemas.Month(202611), ID: schemas.Shard(n + 1)}
		heads[ref.ID] = 1
		for pos := uint64(1); pos <= frames; pos++ {
			m := nats.NewMsg(ref.Subject())
			p := schemas.Placed{Frame: schemas.Frame{Rows: 1, Schema: 1, Producer: "p", Seq: pos, MinTs: 1, MaxTs: 1}, Pos: pos, SourceSeq: pos, SourceTime: 1, Prev: "d", ShardRows: pos}
			p.SetHeaders(m.Header)
			ack, err := js.PublishMsg(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := streams.DecideAt(t.Context(), js, schemas.StreamShards, ack.Sequence)
			if err != nil {
				t.Fatal(err)
			}
			if pos == heads[ref.ID]+1 {
				first[ref] = stored.Time
			}
			if pos == frames {
				tail, err := streams.TailOf(stored)
				if err != nil {
					t.Fatal(err)
				}
				left = append(left, tail)
			}
		}
	}
	r := &Reader{js: js, known: known{waits: map[schemas.ShardRef]waiting{}}}
	want := first[left[0].Ref]
	for report := 1; len(r.known.waits) < shards; report++ {
		if report > 3 {
			t.Fatalf("after %d reports %d of %d shards were looked at", report-1, len(r.known.waits), shards)
		}
		got, err := r.oldest(t.Context(), "app", left, heads)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equal(want) {
			t.Errorf("report %d: the oldest is of %s, want %s", report, got, want)
		}
	}
	for ref, w := range r.known.waits {
		if !w.since.Equal(first[ref]) || w.pos != 2 {
			t.Errorf("of %s position %d is remembered as of %s, it is position 2 of %s", ref, w.pos, w.since, first[ref])
		}
	}
	heads[left[0].Ref.ID] = frames // stored
	if got, err := r.oldest(t.Context(), "app", left[1:], heads); err != nil || !got.Equal(first[left[1].Ref]) {
		t.Errorf("once the oldest is stored: %s, %v, want %s", got, err, first[left[1].Ref])
	}
}
