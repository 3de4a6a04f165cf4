package erasure

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// What is opened of a shard, and where reading it ends.
func TestFramesOfAShard(t *testing.T) {
	t.Parallel()
	e := &ledger.Erasure{Fence: 100, FenceTime: 5000}
	for name, c := range map[string]struct {
		pos          uint64
		first        uint64
		from         schemas.Source
		unreadable   bool
		opened, more bool
	}{
		"below the fence":                  {pos: 1, from: schemas.Source{Seq: 99, Stored: 4999}, opened: true, more: true},
		"at the fence":                     {pos: 1, from: schemas.Source{Seq: 100, Stored: 5000}, opened: true, more: true},
		"above the fence":                  {pos: 1, from: schemas.Source{Seq: 101, Stored: 5001}},
		"given again after a cut":          {pos: 1, from: schemas.Source{Seq: 90, Stored: 6000}, more: true},
		"from before a cut":                {pos: 1, from: schemas.Source{Seq: 200, Stored: 1000}, more: true},
		"above the fence, by its sequence": {pos: 1, from: schemas.Source{Seq: 101}},
		"above the position":               {pos: 8, from: schemas.Source{Seq: 99, Stored: 4999}},
		"a run of records across a fence":  {pos: 1, first: 100, from: schemas.Source{Seq: 120, Stored: 6000}, opened: true, more: true},
		"a run of records above a fence":   {pos: 1, first: 101, from: schemas.Source{Seq: 120, Stored: 6000}},
		"unreadable":                       {pos: 1, from: schemas.Source{Seq: 101, Stored: 5001}, unreadable: true, opened: true, more: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := schemas.Placed{Frame: schemas.Frame{Rows: 1, Schema: 1, Producer: "p", Seq: 1}, Pos: c.pos, ShardRows: 1,
				SourceFirst: c.first, SourceSeq: c.from.Seq, SourceTime: c.from.Stored}
			msg := &streams.Message{RawStreamMsg: jetstream.RawStreamMsg{Header: nats.Header{}}}
			p.SetHeaders(msg.Header)
			if _, err := schemas.ParsePlaced(msg.Header); err != nil {
				t.Fatal(err)
			}
			if c.unreadable {
				msg.Header.Set(schemas.HeaderShardIDs, "?")
			}
			if opened, more := inShard(e, 7)(msg); opened != c.opened || more != c.more {
				t.Errorf("opened: %v, read on: %v; expected %v and %v", opened, more, c.opened, c.more)
			}
		})
	}
}
