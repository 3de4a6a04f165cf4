package repair

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// A lane of a front whose checkpoint is gone goes on after the last of its records that SHARDS or
// ClickHouse has. Records of a front that were routed and are in neither are routed again, as far as
// the front still has them; verify names those that it has not. Its shards that end above what
// SHARDS holds are left, because their next positions were given.

// widened is an entry of a front's shard that is there, as planned, where its range was
// wrong: readers pass over a range that is too narrow. What else it says is not examined.
func widened(e, planned registry.Shard) (registry.Shard, bool) {
	next := e
	next.MinTs, next.MaxTs = min(e.MinTs, planned.MinTs), max(e.MaxTs, planned.MaxTs)
	return next, next.MinTs != e.MinTs || next.MaxTs != e.MaxTs
}

// planFrontLanes adds the checkpoints that the lanes of a front's topic lost: none is there, or an
// older one than the registry's copy, and the front does not have what the copy saw either.
func (r *Repairer) planFrontLanes(ctx context.Context, t *found, last map[schemas.Shard]tables.ShardRecord, p *Plan) error {
	front := t.topic.Front()
	for n := range t.topic.Lanes {
		token := strconv.Itoa(n)
		have, copied, why := t.lanes[token], t.copies[token], ""
		if copied.Source > 0 {
			var err error
			if why, err = streams.Misfit(ctx, r.js, t.topic.SourceFilter(front, token), &copied); err != nil {
				return err
			}
		}
		if have.Seq > 0 && (why == "" || !have.Forgets(&copied)) {
			continue
		}
		l, low, has := lostFrontLane(t, n, last)
		if !has && copied.Source == 0 {
			continue // never routed
		}
		cp := &l.cp
		l.have, cp.Front, cp.Dead = have, front, max(have.Dead, copied.Dead)
		if why == "" {
			if err := r.completeRecords(ctx, t, n, l, low); err != nil {
				return err
			}
		}
		for _, record := range last {
			if record.Seq != cp.Source || cp.Stored != 0 || cp.Source == 0 {
				continue
			}
			at, err := r.reg.RecordAt(ctx, &t.topic, record.Seq, record.Ts)
			if err != nil {
				return err
			}
			cp.Stored = at.Stored
		}
		// Where the front has the records up to there, they are routed again.
		if why != "" && copied.Source >= cp.Source {
			cp.Source, cp.Stored, cp.Era = copied.Source, copied.Stored, copied.Era
		}
		gone := "its checkpoint is gone"
		if have.Seq > 0 {
			gone = have.BothLost(&copied, why)
		}
		p.add(Action{Do: RestoreCheckpoint, Topic: t.topic.Name, Where: schemas.RoutedSubject(t.topic.Name, token), Rows: cp.Rows, Source: "SHARDS, ClickHouse",
			Detail: fmt.Sprintf("%s; the router goes on after record %d of %s", gone, cp.Source, front), topic: &t.topic, lane: l})
	}
	return nil
}

// lostFrontLane is what the shards of a lane say of its checkpoint, if it has any, and up to which record
// each of them that may lack some is stored. It does no I/O.
func lostFrontLane(t *found, n int, last map[schemas.Shard]tables.ShardRecord) (l *lostLane, low uint64, has bool) {
	l = &lostLane{token: strconv.Itoa(n)}
	cp, kept := &l.cp, int64(0)
	low = math.MaxUint64
	for _, ref := range t.refs() {
		if t.lane[ref.ID] != n {
			continue
		}
		has = true
		c, count, rec, e := t.chains[ref.ID], t.counts[ref.ID], t.erasureRecords[ref.ID], t.entries[ref.ID]
		given := t.given(ref.ID)
		_, gone := rec.GoneUpTo(given)
		rows := count.Rows + gone
		if e.Gone() { // what was erased of it before is in neither number
			rows = e.DroppedRows
		}
		if len(c) > 0 {
			rows = max(rows, c.last().shardRows)
			if at := c.last(); cp.Behind(at.era, at.source) {
				cp.Source, cp.Stored, cp.Era = at.source, at.stored, at.era
			}
		}
		if record := last[ref.ID]; record.Seq > cp.Source {
			cp.Source, cp.Stored = record.Seq, 0
		}
		if e.Status != registry.Closed && !e.Gone() { // a closed shard was stored whole
			low = min(low, last[ref.ID].Seq)
		}
		cp.Frames, cp.Rows, kept = cp.Frames+t.end(ref.ID), cp.Rows+rows, kept+e.KeptRows()
		if e.Forked() {
			continue // a sink settles it
		}
		if given > t.tail(ref.ID) {
			l.behind = append(l.behind, ref)
		}
		if given > t.tail(ref.ID) || t.unsettled(ref.ID) {
			l.cut = append(l.cut, ref)
		}
	}
	cp.Rows = uint64(max(0, int64(cp.Rows)-kept))
	return l, low, has
}
