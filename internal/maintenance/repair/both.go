package repair

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// Both streams may lose their ends at once: with SHARDS went a lane's checkpoint and the
// frames behind it, and EVENTS does not hold the messages to route again. The registry's
// copy of the checkpoint tells how far the lane was. What ClickHouse has of that is left
// where it is, in shards that are sealed. What it has not is lost, and is entered in the
// new checkpoint with its positions. What EVENTS still holds and ClickHouse lacks is
// routed again. It is the same where EVENTS lost its end and SHARDS only frames.

// amount is frames and rows of a month.
type amount struct{ frames, rows uint64 }

// lostFrames are the positions of a shard that the lane had given and neither SHARDS nor
// ClickHouse has, and how much of that the checkpoint which is there counts.
func (t *found) lostFrames(ref schemas.ShardRef, l *lostLane) (f checkpoint.LostFrames, counted amount, ok bool) {
	e, known := t.entries[ref.ID], l.known.Tails[ref.ID]
	if t.unsettled(ref.ID) && e.Until() > known.Pos { // it was left, and is no longer among the tails
		known = checkpoint.Tail{Pos: e.Until(), Rows: e.Rows}
	}
	record := t.erasureRecords[ref.ID]
	end, rows := t.storedRows(ref.ID)
	_, gone := record.GoneUpTo(end)
	_, above := record.GoneUpTo(max(known.Pos, end))
	if rows += above - gone; rows >= known.Rows { // the last rows were erased, or all are there
		end = max(end, t.given(ref.ID))
	}
	settled := e.Status != registry.Active && e.SealedAt >= known.Pos && !t.unsettled(ref.ID)
	if e.Gone() || settled || known.Pos <= end {
		return f, counted, false
	}
	f = checkpoint.LostFrames{Shard: ref.ID, Month: ref.Month, From: end + 1, To: known.Pos, Rows: known.Rows - min(known.Rows, rows), Found: time.Now().UnixNano()}
	counted = amount{known.Pos - end, f.Rows}
	if l.both { // the checkpoint is older
		had := l.have.Tails[ref.ID]
		counted = amount{had.Pos - min(had.Pos, end), had.Rows - min(had.Rows, rows)}
	}
	return f, counted, true
}

// storedRows are the rows of a shard, with those that erasures took, up to the last position that SHARDS or ClickHouse
// has of it.
func (t *found) storedRows(id schemas.Shard) (end, rows uint64) {
	c, count, record := t.chains[id], t.counts[id], t.erasureRecords[id]
	if end = t.tail(id); end > count.Head {
		return end, c.last().shardRows
	}
	_, gone := record.GoneUpTo(count.Head)
	return count.Head, count.Rows + gone
}

// nameLost enters what is lost in the checkpoint, without what comes back from EVENTS, and
// in the plan.
func (l *lostLane) nameLost(t *found, again map[schemas.Month]amount, p *Plan) {
	for _, f := range l.lost {
		a := again[f.Month]
		frames, rows := min(a.frames, f.To-f.From+1), min(a.rows, f.Rows)
		again[f.Month] = amount{a.frames - frames, a.rows - rows}
		back := rows > 0 && rows == f.Rows
		if f.From, f.Rows = f.From+frames, f.Rows-rows; f.From > f.To || back {
			continue
		}
		l.cp.AddLost(f)
		ref := schemas.ShardRef{Topic: t.topic.Name, Month: f.Month, ID: f.Shard}
		p.add(Action{Do: Lost, Topic: ref.Topic, Where: ref.String(), From: f.From, To: f.To, Rows: f.Rows, ref: ref, topic: &t.topic,
			Detail: fmt.Sprintf("%d rows: %s and %s lost these frames before they were stored", f.Rows, schemas.StreamEvents, schemas.StreamShards)})
	}
}
