package query

import (
	"context"
	"errors"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// Bounds of one look. Of maxLacking shards that lack rows the frames are asked, some sixty questions each, and the others are taken for
// lacking as well: the next look has them. Of a shard at most maxFiltered frames are read to find one that a sink will store.
const (
	maxLacking  = 16
	maxFiltered = 64
)

// lackBelowFloor returns the tails of those of some shards of which ClickHouse lacks rows that sinks will store again, though their
// floor says that all is stored: ClickHouse was restored from an older copy, or emptied. n bounds their rows from above. Only where the
// rows do not add up are the frames asked.
func (r *Reader) lackBelowFloor(ctx context.Context, topic string, shards []registry.Shard, tailOf map[schemas.Shard]streams.Tail) (n uint64, lacking []streams.Tail, err error) {
	refs := make([]schemas.ShardRef, len(shards))
	for i := range shards {
		refs[i] = shards[i].Ref()
	}
	stored, err := r.db.StoredOf(ctx, topic, refs)
	if err != nil {
		return 0, nil, err
	}
	records, err := r.reg.ErasureRecords(ctx, topic) // after the rows: they say what goes before it does
	if err != nil {
		return 0, nil, err
	}
	for i := range shards {
		e, has := &shards[i], stored[shards[i].ID]
		record, t := records[e.ID], tailOf[e.ID]
		_, gone := record.GoneUpTo(t.Pos)
		if has.Head >= t.Pos || has.Rows+gone >= t.ShardRows {
			continue
		}
		if len(lacking) < maxLacking {
			lacks, err := r.reg.LacksBelowFloor(ctx, e, has.Head, has.Rows)
			if err == nil && lacks {
				lacks, err = r.willStore(ctx, e, &record, has.Head, t.Seq)
			}
			if err != nil && !errors.Is(err, streams.ErrNoFrame) { // it went between two questions: the next look knows
				return 0, nil, err
			}
			if err == nil && !lacks {
				continue
			}
		}
		lacking, n = append(lacking, t), n+t.ShardRows-has.Rows-gone
	}
	return n, lacking, nil
}

// willStore reports whether a sink will store a row of a shard's frames above head and up to its floor, by the ledger as sinks do, and by
// what erasures counted that are not in it as ended. Where it will not, rows are gone that no erasure counted, which verify says: they are
// not waited for.
func (r *Reader) willStore(ctx context.Context, s *registry.Shard, record *ledger.ErasureRecord, head, tailSeq uint64) (bool, error) {
	all, err := r.reg.Ledger(ctx, s.Topic)
	if err != nil {
		return false, err
	}
	erased, subject := all.Only(ledger.Erased), s.Ref().Subject()
	topic, err := r.reg.Topic(ctx, s.Topic)
	if err != nil {
		return false, err
	}
	seq, err := streams.FindFrame(ctx, r.js, subject, head+1, tailSeq)
	if err != nil {
		return false, err
	}
	var reader frame.Reader
	for range maxFiltered {
		p, msg, err := streams.Frame(ctx, r.js, subject, seq)
		if err != nil || p.Pos > s.Floor {
			return false, err
		}
		if gone := goneAt(record, &p); gone < uint64(p.Rows) && p.Cleared == "" {
			kept := uint64(p.Rows)
			if cover := erased.Covering(p.Source(), p.MinTs, p.MaxTs); len(cover) > 0 {
				if err := reader.Open(msg.Data, &topic, p.Schema); err != nil {
					return false, err
				}
				keep, params := cover.Keep()
				if kept, err = r.db.CountFresh(ctx, &topic, p.Schema, [][]byte{reader.Raw()}, tables.Condition{SQL: keep, Params: params}); err != nil {
					return false, err
				}
			}
			if kept > gone {
				return true, nil
			}
		}
		if p.Pos == s.Floor || msg.Sequence >= tailSeq {
			return false, nil
		}
		seq = msg.Sequence + 1
	}
	return true, nil
}

// goneAt is how many of a frame's rows erasures took, or take; all where cuts were joined, which do not tell.
func goneAt(record *ledger.ErasureRecord, p *schemas.Placed) (n uint64) {
	for _, c := range record.Cuts() {
		switch {
		case c.First() == p.Pos && c.Pos == p.Pos:
			n += c.Rows
		case c.First() <= p.Pos && p.Pos <= c.Pos:
			return uint64(p.Rows)
		}
	}
	return n
}
