package repair

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/internal/reconcile"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// planShard adds what one shard needs: its rows against its frames.
func (r *Repairer) planShard(ctx context.Context, t *found, ref schemas.ShardRef, p *Plan) error {
	c := t.chains[ref.ID]
	e, record := t.entries[ref.ID], t.erasureRecords[ref.ID]
	if e.Gone() || len(c) > 0 && c.last().cleared == schemas.ClearedDropped {
		t.completeGone(ref, p)
		return nil // past its retention
	}
	if e.Forked() {
		p.note("%s forked, and a sink settles it: what SHARDS and ClickHouse have of it is not compared before that", ref)
		t.planWentBack(ref, p)
		return nil
	}
	head := e.Head(t.counts[ref.ID].Head)
	lane := t.lane[ref.ID]
	_, gone := record.GoneUpTo(head)
	held := c
	var gaps []gap
	for _, g := range c.gaps() {
		if len(record.NotPurged(ledger.Span{From: g.from, To: g.to})) == 0 {
			continue // on purpose, or settled
		}
		gaps = append(gaps, g)
		found, err := r.recover(ctx, &t.topic, ref, held, g, lane)
		if err != nil {
			return err
		}
		c = c.with(found)
	}
	if known := t.lanes[strconv.Itoa(lane)].Tails[ref.ID]; lane != schemas.NoLane && e.Status == registry.Active && known.Pos > t.tail(ref.ID) {
		g, upTo := c.back(known, t.lanes[strconv.Itoa(lane)].Checkpoint)
		if len(record.NotPurged(ledger.Span{From: g.from, To: g.to})) > 0 {
			found, err := r.recover(ctx, &t.topic, ref, upTo, g, lane)
			if err != nil {
				return err
			}
			held, gaps = upTo, append(gaps, g)
			if c = c.with(found); len(found) == 0 && g.to > head && t.fits(lane) {
				p.add(Action{Do: Lost, Topic: ref.Topic, Where: ref.String(), From: max(g.from, head+1), To: g.to, Rows: upTo.rowsOf(g), ref: ref, topic: &t.topic, Detail: fmt.Sprintf(
					"up to %d rows: neither %s nor %s holds these frames, the last of the shard", upTo.rowsOf(g), schemas.StreamShards, schemas.StreamEvents)})
			}
		}
	}
	if g, behind, ok := c.front(head, t.counts[ref.ID].Rows+gone, t.counts[ref.ID].IDs+ledger.SumIDs(record.Cuts(), head)); ok && head == t.counts[ref.ID].Head {
		found, err := r.recover(ctx, &t.topic, ref, behind, g, lane)
		if err != nil {
			return err
		}
		c = c.with(found)
	}
	s := &shardPlan{ref: ref, topic: &t.topic, held: held, chain: c, gaps: gaps, head: head, floor: e.Floor, erasureRecord: &record, plan: p, twins: map[uint64]uint64{}}
	if head > 0 && t.counts[ref.ID].Rows > 0 {
		var err error
		if s.groups, err = r.db.Groups(ctx, ref); err != nil {
			return err
		}
	}
	all, rest := reconcile.Compare(c.frames(), s.groups, record.Cuts())
	differ := reconcile.Differing(all)
	for i := range differ {
		d := &differ[i]
		if d.Distinct == d.Have && d.Have <= d.Want {
			continue
		}
		copies, err := r.db.Copies(ctx, ref, d.Lo, d.Hi)
		if err != nil {
			return err
		}
		// Rows that share an id and nothing more are a client's own ids, or left by an
		// erasure: as it should be.
		if d.Distinct = d.Have - min(d.Have, copies); d.Summed && d.Distinct > d.Want {
			if s.twins[d.Lo], err = r.db.CountTwins(ctx, ref, d.Lo, d.Hi); err != nil {
				return err
			}
		}
	}
	s.below(differ)
	if t.end(ref.ID) > t.tail(ref.ID) {
		copies := uint64(0)
		if rest.Distinct < rest.Have {
			var err error
			if copies, err = r.db.Copies(ctx, ref, rest.Lo, rest.Hi); err != nil {
				return err
			}
		}
		t.routed[ref.ID] = s.end(rest, copies, t.end(ref.ID), e, e.Status == registry.Closed || e.Status == registry.Sealed && gone == 0 && !t.unsettled(ref.ID))
	}
	s.above(e.Status == registry.Closed, time.Now().Add(-r.maxWait))
	s.complete(differ)
	return nil
}

// completeGone adds that SHARDS lost the mark of a shard that retention dropped: its entry alone says
// so from then on.
func (t *found) completeGone(ref schemas.ShardRef, p *Plan) {
	e, record := t.entries[ref.ID], t.erasureRecords[ref.ID]
	if e.Status != registry.Dropped || e.SealedAt == 0 || len(t.chains[ref.ID]) > 0 || record.Stored(0, e.SealedAt) {
		return
	}
	p.add(Action{Do: Acknowledge, Topic: ref.Topic, Where: ref.String(), From: 1, To: e.SealedAt, Source: "registry", ref: ref, topic: &t.topic,
		Detail: fmt.Sprintf("dropped by retention, and %s lost the mark of its last frame", schemas.StreamShards)})
}

// recover looks for a gap's frames in EVENTS.
func (r *Repairer) recover(ctx context.Context, topic *schemas.Topic, ref schemas.ShardRef, c chain, g gap, lane int) ([]link, error) {
	from, to := c[g.after-1].source, c[g.after].source
	if c[g.after-1].era != c[g.after].era { // sequences were given again between the two
		from, to = 1, math.MaxUint64
	}
	var cands []candidate
	var reader frame.Reader
	if lane == schemas.NoLane {
		return nil, nil
	}
	subject := schemas.EventsSubject(ref.Topic, ref.Month, lane)
	err := streams.Gather(ctx, r.js, schemas.StreamEvents, subject, from, nil, func(msg *streams.Message) (bool, error) {
		if msg.Sequence > to {
			return false, nil
		}
		if leaves(r.hasKey, topic, msg.Header) {
			return true, nil
		}
		frames, payloads, _ := r.check(topic, msg)
		for i, f := range frames {
			l := newLink(schemas.Placed{Frame: f, SourceSeq: msg.Sequence, SourceTime: msg.Time.UnixNano()}, 0, msg.Time)
			l.nth = i
			if err := reader.Open(payloads[i], topic, f.Schema); err != nil {
				return false, fmt.Errorf("message %d of %s: %w", msg.Sequence, schemas.StreamEvents, err)
			}
			l.ids = reader.IDSum()
			cands = append(cands, candidate{l, digest(schemas.Digest(payloads[i])), uint64(len(payloads[i]))})
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("repair: %s: %w", ref, err)
	}
	return c.match(g, cands, c.digests()), nil
}

// shardPlan is the decisions about one shard. It does no I/O.
type shardPlan struct {
	ref           schemas.ShardRef
	topic         *schemas.Topic
	held          chain // what SHARDS holds
	chain         chain // and what was recovered
	gaps          []gap // of held
	groups        []tables.Group
	head          uint64
	floor         uint64
	erasureRecord *ledger.ErasureRecord
	plan          *Plan
	twins         map[uint64]uint64 // by the end below a stretch with too many rows, how many of these stand elsewhere too
}

func (s *shardPlan) add(a Action) {
	a.Topic, a.Where, a.ref, a.topic = s.ref.Topic, s.ref.String(), s.ref, s.topic
	s.plan.add(a)
}

// gone is how many rows of the positions above lo and up to hi were erased. While
// an erasure is under way the most of them counts: what it takes must not come
// back.
func (s *shardPlan) gone(lo, hi uint64) uint64 {
	_, upTo := s.erasureRecord.GoneUpTo(hi)
	_, before := s.erasureRecord.GoneUpTo(lo)
	return upTo - min(before, upTo)
}

// below heals what differs up to the head. Rows that are the same in every column are in Distinct
// once each.
func (s *shardPlan) below(differ []reconcile.Stretch) {
	var last []Action // what goes once all rows stand at their own positions
	for _, d := range differ {
		copies, replaced := d.Have-d.Distinct, d.Summed && d.Have == d.Want && d.HaveIDs != d.WantIDs
		if copies == 0 && d.Have == d.Want && !replaced || d.Hi <= s.floor && d.Have < d.Want {
			continue // as it should be; or settled: below the floor nothing comes back
		}
		at := Action{From: d.Lo + 1, To: d.Hi, lo: d.Lo, hi: d.Hi}
		frames, whole := s.chain.between(max(d.Lo, s.floor), d.Hi)
		held := whole && s.floor <= d.Lo
		// A client that repeats itself has rows that are the same as well. Frames bring
		// those back; without them only what is too many may go.
		switch {
		case copies == 0:
		case held || d.Distinct >= d.Want:
			a := at
			a.Do, a.Source = DropCopies, "ClickHouse"
			a.Rows = d.Have - min(d.Have, d.Want)
			a.Detail = fmt.Sprintf("%d rows, %d of them different, the frames brought %d: rows that are the same in every column stay once", d.Have, d.Distinct, d.Want)
			s.add(a)
		default:
			s.plan.note("%s: positions %d to %d have %d rows, %d of them different, and their frames brought %d; nothing is dropped there, because without the frames a copy cannot be told from an event that was logged twice",
				s.ref, d.Lo+1, d.Hi, d.Have, d.Distinct, d.Want)
		}
		// What stands in a row's place goes first: a row that is too many may be a person's own.
		switch {
		case !replaced && d.Distinct <= d.Want:
		case replaced && held:
			a := at
			a.Do, a.frames, a.Source, a.Detail = DropStrange, frames, sources(frames), "rows whose id or time no frame brought there"
			s.add(a)
		default:
			if a, ok := s.surplus(d, frames, s.twins[d.Lo], lacking(differ)); ok && held {
				last = append(last, a)
				break
			}
			why := "that no frame brought may be a person's own: look at it, and delete it in ClickHouse"
			if replaced {
				why = "cannot be told from the others, because not all of the frames are held"
			}
			s.plan.note("%s: positions %d to %d have %d rows, their frames brought %d, and they are not the same; nothing is dropped there: a row %s",
				s.ref, d.Lo+1, d.Hi, d.Have, d.Want, why)
		}
		missing := d.Want - min(d.Want, d.Have)
		if len(frames) > 0 && (missing > 0 || copies > 0 || replaced && held) {
			a := at
			a.Do, a.Rows, a.frames, a.Source = Insert, missing, frames, sources(frames)
			switch {
			case missing > 0:
				a.Detail = fmt.Sprintf("the frames brought %d rows, ClickHouse has %d", d.Want, d.Have)
			case copies > 0:
				a.Detail = "what such a copy stood in for, if anything"
			default:
				a.Detail = "what stood there before"
			}
			s.add(a)
		}
		if missing > 0 && !whole {
			s.lost(d, frames, missing)
		}
	}
	for _, a := range last {
		s.add(a)
	}
}

// end heals, as far as can be, what lies above the frames of a shard whose end
// SHARDS lost, up to its last position: only its entry tells how many rows there
// must be, where that is exact. It gives the rows that were ever routed to the shard.
func (s *shardPlan) end(rest reconcile.Rest, copies, last uint64, e registry.Shard, exact bool) (routed uint64) {
	if copies > 0 {
		s.add(Action{Do: DropCopies, From: rest.Lo + 1, To: rest.Hi, lo: rest.Lo, hi: rest.Hi, Rows: copies, Source: "ClickHouse",
			Detail: fmt.Sprintf("%d rows are the same as another in every column: each stays once", copies)})
	}
	routed = rest.Brought + rest.Have - copies + s.gone(rest.Lo, max(rest.Hi, last)) // the last rows may all be erased
	_, gone := s.erasureRecord.GoneUpTo(last)
	if closed := e.Rows + gone; exact && closed > routed {
		s.add(Action{Do: Lost, From: rest.Lo + 1, To: last, Rows: closed - routed, Detail: fmt.Sprintf(
			"%d rows: it had %d, and %s does not hold these frames", closed-routed, e.Rows, schemas.StreamShards)})
		routed = closed
	}
	return routed
}

// lost names what no source holds of a stretch. The rows that are there may be
// those of the frames that are gone: how many are missing in the end only the
// insert tells, so the count is the most it can be.
func (s *shardPlan) lost(d reconcile.Stretch, frames []link, missing uint64) {
	held := uint64(0)
	for i := range frames {
		held += frames[i].rows
	}
	rows := min(missing, d.Want-min(d.Want, held))
	if rows == 0 {
		return
	}
	next := d.Lo + 1
	name := func(to uint64) {
		if next <= to {
			s.add(Action{Do: Lost, From: next, To: to, Rows: rows, Detail: fmt.Sprintf(
				"up to %d rows: neither %s nor %s holds these frames", rows, schemas.StreamShards, schemas.StreamEvents)})
		}
	}
	for i := range frames {
		name(frames[i].pos - 1)
		next = frames[i].pos + 1
	}
	name(d.Hi)
}

// above stores what stands above the head, where no sink would: behind or in a
// gap, and where the head went back below what was stored. Frames that came after
// since are a sink's, and on their way.
func (s *shardPlan) above(closed bool, since time.Time) {
	i := s.chain.at(s.head + 1)
	if i == len(s.chain) || s.chain.last().cleared != "" {
		return
	}
	stuck := s.held.first().pos > s.head+1 // SHARDS is purged below what was stored once
	for _, g := range s.gaps {
		stuck = stuck || g.to > s.head
	}
	if !stuck && !closed && s.chain[i].at > since.UnixNano() {
		return
	}
	next, after := s.head+1, s.head
	run := func(frames []link) {
		if len(frames) > 0 {
			rows := uint64(0)
			for i := range frames {
				rows += frames[i].rows
			}
			s.add(Action{Do: Store, From: frames[0].pos, To: frames[len(frames)-1].pos, Rows: rows, lo: after, frames: frames, Source: sources(frames),
				Detail: "not in ClickHouse"})
		}
	}
	begin := i
	for ; i < len(s.chain); i++ {
		l := &s.chain[i]
		if l.pos > next {
			run(s.chain[begin:i])
			begin, after = i, next-1
			rows := l.shardRows - l.rows
			if before, ok := s.chain.upTo(next - 1); ok {
				rows -= min(rows, before)
			}
			s.add(Action{Do: Lost, From: next, To: l.pos - 1, Rows: rows, Detail: fmt.Sprintf(
				"%d rows: neither %s nor %s holds these frames, and they were not stored; what follows them is", rows, schemas.StreamShards, schemas.StreamEvents)})
		}
		next = l.pos + 1
	}
	run(s.chain[begin:])
}

// complete notes gaps whose rows ClickHouse has, now or once the plan is done.
func (s *shardPlan) complete(differ []reconcile.Stretch) {
	for _, g := range s.gaps {
		_, recovered := s.chain.between(g.from-1, g.to)
		stored := g.to <= s.head
		for _, d := range differ {
			if d.Want > d.Have && d.Lo < g.to && d.Hi >= g.from {
				stored = false
			}
		}
		if stored || recovered {
			s.add(Action{Do: Acknowledge, From: g.from, To: g.to, Rows: s.held.rowsOf(g), Source: "ClickHouse", Detail: fmt.Sprintf(
				"no longer in %s; ClickHouse has the rows, and a replay from %s will lack them", schemas.StreamShards, schemas.StreamShards)})
		}
	}
}
