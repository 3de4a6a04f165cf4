package repair

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// planEntries adds what the registry needs of a topic: shard entries that are
// lost or wrong, and head entries that do not name what is there. It does no I/O.
func planEntries(t *found, p *Plan) {
	entries := maps.Clone(t.entries)
	for _, ref := range t.refs() {
		truth := t.truth(ref)
		e, known := entries[ref.ID]
		if !known {
			e = truth.entry()
			entries[ref.ID] = e
			a := Action{Do: RestoreShard, Topic: ref.Topic, Where: ref.String(), Rows: e.Rows, Source: truth.source(), ref: ref, entry: e, topic: &t.topic,
				Detail: fmt.Sprintf("the registry does not know it; lane %d, up to position %d", ref.ID.Lane(), truth.end)}
			if truth.lane == schemas.NoLane {
				p.note("%s: the topic does not have lane %d, so it is sealed where it ends", ref, ref.ID.Lane())
			}
			p.add(a)
			continue
		}
		if next, wrong := truth.corrected(e); len(wrong) > 0 {
			entries[ref.ID] = next
			p.add(Action{Do: CorrectShard, Topic: ref.Topic, Where: ref.String(), Source: truth.source(), ref: ref, entry: next, Detail: strings.Join(wrong, "; ")})
		}
	}
	for _, m := range t.months() {
		h, known := t.heads[m]
		if !known {
			h = registry.Head{Topic: t.topic.Name, Month: m}
		}
		next, why, blank := headOf(h, entries, t.chains)
		for _, e := range blank {
			p.add(Action{Do: RestoreShard, Topic: e.Topic, Where: e.Name(), Source: "registry", ref: e.Ref(), entry: e, topic: &t.topic,
				Detail: "active, and without an entry or a frame"})
		}
		if !known {
			why = append([]string{"the registry does not know the month"}, why...)
		}
		if len(why) > 0 {
			p.add(Action{Do: RestoreMonth, Topic: t.topic.Name, Where: schemas.HeadKey(t.topic.Name, m), Source: schemas.StreamShards, topic: &t.topic, head: next, chains: t.chains, Detail: strings.Join(why, "; ")})
		}
	}
}

// months are those of the shards that are known.
func (t *found) months() []schemas.Month {
	seen := map[schemas.Month]bool{}
	for _, ref := range t.where {
		seen[ref.Month] = true
	}
	for m := range t.heads {
		seen[m] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// truth is what frames and rows say of a shard.
type truth struct {
	ref   schemas.ShardRef
	lane  int
	chain chain
	count tables.Count
	gone  uint64 // rows erased
	end   uint64 // the shard's last position, as far as anything tells
	// routed is the rows of a shard of which SHARDS lost the end; else 0.
	routed uint64
	// short: it lacks its end, unsettled; moved: its entry went on meanwhile. laned: the
	// lane's new checkpoint says what becomes of that, and then where the shard ends.
	short, moved, laned bool
}

func (t *found) truth(ref schemas.ShardRef) truth {
	record := t.erasureRecords[ref.ID]
	_, gone := record.GoneUpTo(^uint64(0))
	return truth{ref: ref, lane: t.lane[ref.ID], chain: t.chains[ref.ID], count: t.counts[ref.ID], gone: gone, end: t.end(ref.ID), routed: t.routed[ref.ID],
		short: t.unsettled(ref.ID), moved: t.moved[ref.ID], laned: t.lane[ref.ID] >= 0 && t.lane[ref.ID] < t.topic.Lanes}
}

func (x *truth) source() string {
	var names []string
	if len(x.chain) > 0 {
		names = append(names, schemas.StreamShards)
	}
	if x.count.Rows > 0 {
		names = append(names, "ClickHouse")
	}
	return strings.Join(names, ", ")
}

// rows and bytes of all frames; without the last frame, those that are stored.
func (x *truth) rows() (rows, bytes uint64) {
	if len(x.chain) == 0 {
		return x.count.Rows, 0
	}
	last := x.chain.last()
	return max(last.shardRows, x.count.Rows), last.shardBytes
}

// span covers every event of the shard: stored ones, and those of frames.
func (x *truth) span() (lo, hi int64) {
	lo, hi = x.ref.Month.End(), x.ref.Month.Start()-1 // empty
	if x.count.Rows > 0 {
		lo, hi = min(lo, x.count.MinTs), max(hi, x.count.MaxTs)
	}
	for i := range x.chain {
		lo, hi = min(lo, x.chain[i].minTs), max(hi, x.chain[i].maxTs)
	}
	return lo, hi
}

// open is the range of an active shard whose entry was lost or wrong: the month, until
// closing it makes it exact. Its router goes by the range that it wrote last, which may be
// wider than what repair sees, and does not write it again for events within.
func (x *truth) open() (lo, hi int64) { return x.ref.Month.Start(), x.ref.Month.End() - 1 }

// exact is the range of a shard's events, when all its frames tell, or all of them
// are stored.
func (x *truth) exact() (lo, hi int64, ok bool) {
	if _, whole := x.chain.between(0, x.end); whole {
		lo, hi = x.chain[0].minTs, x.chain[0].maxTs
		for i := range x.chain {
			lo, hi = min(lo, x.chain[i].minTs), max(hi, x.chain[i].maxTs)
		}
		return lo, hi, true
	}
	return x.count.MinTs, x.count.MaxTs, x.count.Rows == x.total() && x.count.Distinct == x.count.Rows
}

// total is the rows that were ever routed to a shard that has frames.
func (x *truth) total() uint64 { return max(x.routed, x.chain.last().shardRows) }

// order is the shard's place in its lane, which its first frame tells: without it the shard is taken for the oldest.
func (x *truth) order() (o registry.Order) {
	if len(x.chain) > 0 && x.chain.first().pos == 1 {
		o.Point = registry.Point{Era: x.chain.first().era, Seq: max(x.chain.first().from().Seq, 1) - 1}
	}
	return o
}

// ended is where the shard's last frame came from; zero where it is gone.
func (x *truth) ended() (at registry.Point) {
	if len(x.chain) > 0 && x.chain.last().pos == x.end {
		at = registry.Point{Era: x.chain.last().era, Seq: x.chain.last().source}
	}
	return at
}

// entry makes the entry of a shard without one. It is active, for the lane's
// router to go on with or to seal: only a router may say that no frame will
// follow. One without a single frame in SHARDS is never written to again, because
// no router finds its end: it is closed.
func (x *truth) entry() registry.Shard {
	e := registry.Shard{Topic: x.ref.Topic, Month: x.ref.Month, ID: x.ref.ID, Order: x.order(), Ended: x.ended(), Status: registry.Active}
	e.Rows, e.Bytes = x.rows()
	e.MinTs, e.MaxTs = x.span()
	if len(x.chain) > 0 && x.chain.last().cleared != "" { // nothing follows a mark
		e.Status, e.SealedAt = registry.Closed, x.end
		if x.chain.last().cleared == schemas.ClearedDropped {
			e.Status, e.Floor, e.DropReason = registry.Dropped, e.SealedAt, "its last frame says so"
			// That frame took the others' place when the rows were dropped, and has their number.
			e.DroppedAt, e.DroppedRows = time.Unix(0, x.chain.last().at).UTC(), x.total()-min(x.total(), x.gone)
			if _, _, ok := x.exact(); !ok {
				e.MinTs, e.MaxTs = x.open() // the month: nothing tells more
			}
		}
	}
	if len(x.chain) > 0 {
		e.CreatedAt = time.Unix(0, x.chain.first().at).UTC()
		e.LastWriteAt = time.Unix(0, x.chain.last().at).UTC()
		if e.Status == registry.Active {
			e.MinTs, e.MaxTs = x.open()
		}
		if e.Status == registry.Active && x.lane == schemas.NoLane { // it does not have a router
			e.Status, e.SealedAt, e.Reason = registry.Sealed, x.end, "the topic does not have its lane"
		}
		return e
	}
	e.CreatedAt, e.LastWriteAt = time.Unix(0, e.MinTs).UTC(), time.Unix(0, e.MaxTs).UTC()
	e.Status, e.SealedAt, e.Reason = registry.Closed, x.count.Head, "its frames are gone"
	return e
}

// corrected is an entry set right, and what was wrong with it. A range is
// widened to the truth, or as far as open says; only that of a closed shard is taken as it
// is. Numbers of an active shard are estimates and left alone.
func (x *truth) corrected(e registry.Shard) (registry.Shard, []string) {
	var wrong []string
	if e.Gone() || e.Forked() {
		return e, nil
	}
	say := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	lo, hi := x.span()
	if lo <= hi && (lo < e.MinTs || hi > e.MaxTs) {
		say("range is %s to %s, its events are from %s to %s", at(e.MinTs), at(e.MaxTs), at(lo), at(hi))
		if e.Status == registry.Active {
			lo, hi = x.open()
		}
		e.MinTs, e.MaxTs = min(lo, e.MinTs), max(hi, e.MaxTs)
	}
	if x.short && x.laned {
		return e, wrong
	}
	if e.Status == registry.Active && x.short && e.LeftAt > x.end {
		say("left at position %d, its last is %d", e.LeftAt, x.end)
		e.LeftAt = x.end
	}
	if e.Status == registry.Active || len(x.chain) == 0 || x.moved {
		return e, wrong
	}
	if e.SealedAt != x.end {
		say("sealed at position %d, its last is %d", e.SealedAt, x.end)
		e.SealedAt = x.end
	}
	if e.Status != registry.Closed || x.gone > 0 {
		return e, wrong
	}
	if rows := x.total(); e.Rows != rows {
		say("closed with %d rows, it had %d", e.Rows, rows)
		e.Rows = rows
	}
	if lo, hi, ok := x.exact(); ok && (e.MinTs != lo || e.MaxTs != hi) {
		if len(wrong) == 0 || e.MinTs < lo || e.MaxTs > hi {
			say("closed with a range of %s to %s, it is %s to %s", at(e.MinTs), at(e.MaxTs), at(lo), at(hi))
		}
		e.MinTs, e.MaxTs = lo, hi
	}
	return e, wrong
}

func at(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

// headOf is a month's head entry set right: each lane's active shard, and those
// that a router has to seal. Which shard is active is the head entry's to say;
// where it does not, the one that was written to last goes on. blank are entries
// for active shards that have neither an entry nor a frame: routers would wait for
// them.
func headOf(h registry.Head, entries map[schemas.Shard]registry.Shard, chains map[schemas.Shard]chain) (next registry.Head, why []string, blank []registry.Shard) {
	next = h
	next.Active, next.Retired = maps.Clone(h.Active), maps.Clone(h.Retired)
	if next.Active == nil {
		next.Active = map[int]schemas.Shard{}
	}
	if next.Retired == nil {
		next.Retired = map[schemas.Shard]int{}
	}
	say := func(format string, a ...any) { why = append(why, fmt.Sprintf(format, a...)) }
	for _, lane := range slices.Sorted(maps.Keys(next.Active)) {
		id := next.Active[lane]
		e, known := entries[id]
		switch {
		case !known:
			blank = append(blank, registry.Shard{Topic: h.Topic, Month: h.Month, ID: id, Order: h.Youngest[lane], Status: registry.Active,
				CreatedAt: time.Unix(0, h.Month.Start()).UTC(), LastWriteAt: time.Unix(0, h.Month.Start()).UTC(), MinTs: h.Month.End(), MaxTs: h.Month.Start() - 1})
		case e.Status != registry.Active || id.Lane() != lane:
			say("lane %d has %s, which is %s, of lane %d; the next frame makes a new one", lane, e.Name(), e.Status, id.Lane())
			delete(next.Active, lane)
		}
	}
	for _, e := range entries { // no shard of the month is younger
		if e.Month == h.Month {
			next.Made(&e)
		}
	}
	newest := map[int]schemas.Shard{}
	seq := func(id schemas.Shard) uint64 {
		if c := chains[id]; len(c) > 0 {
			return c.last().seq
		}
		return 0
	}
	var open []registry.Shard
	for _, e := range entries {
		if e.Month != h.Month || e.Status != registry.Active || next.Active[e.ID.Lane()] == e.ID {
			continue
		}
		if _, retired := next.Retired[e.ID]; retired {
			continue
		}
		open = append(open, e)
		if n, ok := newest[e.ID.Lane()]; !ok || seq(e.ID) > seq(n) {
			newest[e.ID.Lane()] = e.ID
		}
	}
	slices.SortFunc(open, func(a, b registry.Shard) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range open {
		if _, has := next.Active[e.ID.Lane()]; !has && newest[e.ID.Lane()] == e.ID && e.Reason == "" {
			say("lane %d goes on with %s", e.ID.Lane(), e.ID)
			next.Active[e.ID.Lane()] = e.ID
			continue
		}
		say("%s of lane %d is to be sealed", e.ID, e.ID.Lane())
		next.Retired[e.ID] = e.ID.Lane()
	}
	return next, why, blank
}
