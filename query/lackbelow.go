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

// Bounds of one look. Of maxLooked shards whose rows do not add up the frames are asked, some sixty questions each; as long as one of them
// lacks rows the others are taken for lacking too. Of a shard at most maxFiltered frames are read to find one that a sink will store.
const (
	maxLooked   = 16
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
	looked := 0
	for i := range shards {
		e, has := &shards[i], stored[shards[i].ID]
		record, t := records[e.ID], tailOf[e.ID]
		_, gone := record.GoneUpTo(t.Pos)
		if has.Head >= t.Pos || has.Rows+gone >= t.ShardRows {
			continue
		}
		if looked < maxLooked || len(lacking) == 0 {
			looked++
			lacks, err := r.reg.LacksBelowFloor(ctx, e, has.Head, has.Rows)
			if err == nil && lacks {
				lacks, err = r.willStore(ctx, e, &record, has.Head)
			}
			if err != nil && (ctx.Err() != nil || errors.Is(err, tables.ErrUnreachable) || errors.Is(err, streams.ErrCut)) {
				return 0, nil, err
			}
			if err == nil && !lacks { // what cannot be read is not stored either
				continue
			}
		}
		lacking, n = append(lacking, t), n+t.ShardRows-has.Rows-gone
	}
	return n, lacking, nil
}

// willStore reports whether a sink will store a row of a shard's frames above head and up to its floor, by the ledger as sinks do, and by
// erasures under way that counted them. Where it will not, rows are gone that no erasure counted, which verify says: they are not waited
// for.
func (r *Reader) willStore(ctx context.Context, s *registry.Shard, record *ledger.ErasureRecord, head uint64) (bool, error) {
	all, err := r.reg.Ledger(ctx, s.Topic)
	if err != nil {
		return false, err
	}
	topic, err := r.reg.Topic(ctx, s.Topic)
	if errors.Is(err, registry.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	subject := s.Ref().Subject()
	last, err := streams.DecideLast(ctx, r.js, schemas.StreamShards, subject)
	if err != nil {
		return false, err
	}
	seq, err := streams.FindFrame(ctx, r.js, subject, head+1, last.Sequence)
	if err != nil {
		return false, err
	}
	var reader frame.Reader
	for range maxFiltered {
		p, msg, err := streams.Frame(ctx, r.js, subject, seq)
		if err != nil || p.Pos > s.Floor {
			return false, err
		}
		if p.Cleared == "" && goneAt(record, p.Pos) < uint64(p.Rows) {
			cover := taken(all, record, &p)
			if len(cover) == 0 {
				return true, nil
			}
			if err := reader.Open(msg.Data, &topic, p.Schema); err != nil {
				return false, err
			}
			keep, params := cover.Keep()
			kept, err := r.db.CountFresh(ctx, &topic, p.Schema, [][]byte{reader.Raw()}, tables.Condition{SQL: keep, Params: params})
			if err != nil || kept > 0 {
				return kept > 0, err
			}
		}
		if p.Pos == s.Floor || msg.Sequence >= last.Sequence {
			return false, nil
		}
		seq = msg.Sequence + 1
	}
	return true, nil
}

// taken are the erasures that keep rows of a frame from being stored: those that ended, and those under way that counted it.
func taken(all ledger.Erasures, record *ledger.ErasureRecord, p *schemas.Placed) (cover ledger.Cover) {
	for i := range all {
		e := &all[i]
		_, counted := record.Receipts[e.ID]
		counted = counted && p.Pos <= record.CountedUpTo(e.ID)
		if now := record.Pending; now != nil && now.Erasure == e.ID {
			counted = counted || now.UpTo == 0 || p.Pos <= now.UpTo
		}
		if (counted || e.State == ledger.Erased) && e.Covers(p.Source(), p.MinTs, p.MaxTs) {
			cover = append(cover, *e)
		}
	}
	return cover
}

// goneAt is how many rows erasures took, or take, from one position. Cuts that were joined do not tell.
func goneAt(record *ledger.ErasureRecord, pos uint64) (n uint64) {
	for _, c := range record.Cuts() {
		if c.First() == pos && c.Pos == pos {
			n += c.Rows
		}
	}
	return n
}
