package repair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// Apply carries a plan out, action by action, and tells each one's outcome as
// soon as it is known. Each action may be done any number of times, and is done
// whole or not at all, so a repairer that is killed leaves a shorter plan behind.
// An action that fails does not keep the others from being done; the errors are
// joined.
func (r *Repairer) Apply(ctx context.Context, p *Plan, tell func(*Action, error)) error {
	var failed []error
	for i := range p.Actions {
		a := &p.Actions[i]
		if a.Do == Lost {
			tell(a, nil)
			continue
		}
		r.crash("before " + string(a.Do))
		// What an action takes out of a table or a stream, and has put elsewhere, may be in no part of a copy that is under way.
		err := streams.MayTake(ctx, r.js)
		if err == nil {
			err = r.unlessRemoved(ctx, p, a.Topic)
		}
		if err == nil {
			err = r.do(ctx, a)
		}
		if ctx.Err() != nil {
			return errors.Join(append(failed, ctx.Err())...)
		}
		if a.State = Done; err != nil {
			a.State = Failed
			failed = append(failed, fmt.Errorf("repair: %s %s: %w", a.Do, a.Where, err))
		}
		tell(a, err)
	}
	return errors.Join(failed...)
}

// unlessRemoved refuses what was planned for a topic whose removal began since.
func (r *Repairer) unlessRemoved(ctx context.Context, p *Plan, topic string) error {
	if schemas.ValidateTopicName(topic) != nil {
		return nil // of no topic
	}
	d, err := r.reg.Removal(ctx, topic)
	if was, known := p.removals[topic]; err == nil && (!known || !was.Began.Equal(d.Began)) {
		return fmt.Errorf("%w %q: its removal began since this was planned; nothing of it is restored", schemas.ErrUnknownTopic, topic)
	}
	return nil // not readable, or away: the action meets that
}

func (r *Repairer) do(ctx context.Context, a *Action) error {
	switch a.Do {
	case RestoreTopic:
		return unlessConflict(r.reg.RestoreTopic(ctx, *a.topic))
	case RemoveEntry:
		return unlessConflict(r.reg.Remove(ctx, a.odd))
	case RestoreShard:
		return unlessConflict(r.reg.RestoreShard(ctx, a.topic, a.entry))
	case RestoreMonth:
		return r.month(ctx, a)
	case Store:
		return r.store(ctx, a)
	case DropCopies:
		return errors.Join(r.db.DropCopies(ctx, a.ref, a.lo, a.hi), derived.Of(r.db).Drop(ctx, a.ref, r.reg.DerivedDropper(a.Topic)))
	case DropStrange:
		return r.dropStrange(ctx, a)
	case DropMoved:
		return errors.Join(r.dropMoved(ctx, a), derived.Of(r.db).Drop(ctx, a.ref, r.reg.DerivedDropper(a.Topic)))
	case Insert:
		if err := r.insert(ctx, a); err != nil {
			return errors.Join(err, derived.Of(r.db).DropDoubted(ctx, a.ref, r.reg.DerivedDropper(a.Topic)))
		}
		return derived.Of(r.db).Drop(ctx, a.ref, r.reg.DerivedDropper(a.Topic))
	case Acknowledge:
		return r.complete(ctx, a)
	case CorrectShard:
		return r.correct(ctx, a)
	case RestoreCheckpoint:
		return r.checkpoint(ctx, a)
	case AdvanceFront:
		return r.advance(ctx, a)
	case LeaveShard:
		return r.leaveShard(ctx, a)
	case DropMisplaced:
		return r.dropMisplaced(ctx, a)
	case PutAgain:
		return r.putAgain(ctx, a)
	case restoreOf(records.Of(a.topic)):
		return r.restore(ctx, a)
	case dropOf(records.Of(a.topic)):
		return r.dropEnded(ctx, a)
	}
	return nil
}

// unlessConflict: what was to be restored is there, whichever process wrote it.
func unlessConflict(err error) error {
	if errors.Is(err, registry.ErrConflict) {
		return nil
	}
	return err
}

// month writes a month's head entry. A router that rotates meanwhile changes it, at full
// load before any plan is made: then what is wrong with it is decided again.
func (r *Repairer) month(ctx context.Context, a *Action) error {
	for next := a.head; ; {
		err := r.reg.RestoreHead(ctx, a.topic, next)
		if !errors.Is(err, registry.ErrConflict) {
			return err
		}
		// The head is read first: what changes its shards afterwards changes it too.
		h, err := r.reg.Head(ctx, a.Topic, next.Month)
		if err != nil {
			return err
		}
		shards, err := r.reg.Shards(ctx, a.Topic, h.Month)
		if err != nil {
			return err
		}
		entries := map[schemas.Shard]registry.Shard{}
		for _, s := range shards {
			entries[s.ID] = s
		}
		var why []string
		if next, why, _ = headOf(h, entries, a.chains); len(why) == 0 {
			return nil
		}
	}
}

// complete enters positions among those the shard's erasure record knows to be out of
// SHARDS.
func (r *Repairer) complete(ctx context.Context, a *Action) error {
	_, err := r.reg.AmendErasureRecord(ctx, a.ref, func(t *ledger.ErasureRecord) bool {
		before := t.PurgedPositions()
		for pos := a.From; pos <= a.To && len(t.Purged) < ledger.MaxSpans; pos++ {
			t.AddPurged(pos)
		}
		return t.PurgedPositions() != before
	})
	return err
}

// correct sets an entry's numbers as planned, on a fresh reading: a range that a
// router widened meanwhile stays as wide, and a shard that went on in its life
// keeps where it is. A closed shard's are exact: those of an entry that was written since, by an erasure or by a sink that closed it, stay.
func (r *Repairer) correct(ctx context.Context, a *Action) error {
	want, since := a.entry, false
	_, err := r.reg.Correct(ctx, want.Ref(), func(s *registry.Shard) bool {
		before := *s
		if since = s.Status == registry.Closed && !s.Unchanged(&want); since {
			return false
		}
		if s.Status == registry.Closed {
			s.Rows, s.SealedAt, s.MinTs, s.MaxTs = want.Rows, want.SealedAt, want.MinTs, want.MaxTs
		} else {
			s.MinTs, s.MaxTs = min(s.MinTs, want.MinTs), max(s.MaxTs, want.MaxTs)
		}
		if s.Status == registry.Sealed && want.Status == registry.Sealed {
			s.SealedAt = want.SealedAt
		}
		if s.Status == registry.Active && want.Status == registry.Active {
			s.LeftAt = want.LeftAt
		}
		return !reflect.DeepEqual(*s, before)
	})
	if err == nil && since {
		err = fmt.Errorf("%w: the entry of %s was written since this was planned; run `almanac repair` again", registry.ErrConflict, a.ref)
	}
	return err
}

// checkpoint leaves the shards whose next positions were given already, and then
// writes the lane's checkpoint, under the expectation that no other process did meanwhile,
// and that ClickHouse still has what the checkpoint passes.
func (r *Repairer) checkpoint(ctx context.Context, a *Action) error {
	l := a.lane
	if err := r.stillStored(ctx, l); err != nil {
		return err
	}
	for _, ref := range l.behind {
		if err := r.leave(ctx, ref); err != nil {
			return err
		}
		r.crash("after leave")
	}
	if err := r.writeCheckpoint(ctx, schemas.RoutedSubject(a.Topic, l.token), l); err != nil {
		return err
	}
	r.crash("after checkpoint")
	// Last: until then the lane's router waits, and another repair does it again.
	for _, ref := range l.cut {
		if err := r.completeEnd(ctx, ref); err != nil {
			return err
		}
	}
	return nil
}

// stillStored is a conflict where ClickHouse has less of a lane's shards than it had when the lane's checkpoint was planned, unless
// retention or an erasure took it: the checkpoint passes what was there, and nothing would route it again.
func (r *Repairer) stillStored(ctx context.Context, l *lostLane) error {
	for ref, was := range l.heads {
		head, err := r.db.Head(ctx, ref)
		if err != nil {
			return err
		}
		if head >= was {
			continue
		}
		e, err := r.reg.Shard(ctx, ref)
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			return err
		}
		if e.Gone() || e.Head(head) >= was {
			continue
		}
		return fmt.Errorf("%w: ClickHouse had %s up to position %d when this was planned and has it up to %d; run `almanac repair` again",
			registry.ErrConflict, schemas.PublicShardName(ref.Topic, ref.Month, ref.ID), was, head)
	}
	return nil
}

// writeCheckpoint writes a lane's checkpoint where the one that was planned from
// still stands, or where a router did no more since than begin a run: one that waits
// for this repair fences the lane again and again.
func (r *Repairer) writeCheckpoint(ctx context.Context, subject string, l *lostLane) error {
	for range maxFenced {
		now, err := streams.Checkpoint(ctx, r.js, subject)
		if err != nil {
			return fmt.Errorf("repair: %w", err)
		}
		// One that cannot be read is as none, but for its place.
		if now.Seq > 0 && now.Err == nil && l.have.Seq == 0 || now.Seq == 0 && l.have.Seq > 0 || !sameRouted(now.Checkpoint, l.have.Checkpoint) {
			return fmt.Errorf("%w: %s stood at message %d of %s when this was planned and stands at %d; run `almanac repair` again",
				registry.ErrConflict, subject, l.have.Source, l.cp.Stream(), now.Source)
		}
		l.cp.Router, l.cp.Epoch = "repair", now.Epoch+1
		data, err := json.Marshal(&l.cp)
		if err != nil {
			return err
		}
		msg := nats.NewMsg(subject)
		msg.Data = data
		msg.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(now.Seq, 10))
		_, err = streams.Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) { return r.js.PublishMsg(ctx, msg) })
		if !streams.LostRace(err) {
			return err
		}
	}
	return fmt.Errorf("%w: %s: a router was faster %d times", registry.ErrConflict, subject, maxFenced)
}

// maxFenced bounds the races with a waiting router, which begins a run every
// second or so: to lose two is rare.
const maxFenced = 20

// sameRouted says whether two checkpoints say the same of what was routed, whichever
// router wrote them.
func sameRouted(a, b checkpoint.Checkpoint) bool {
	a.Router, a.Epoch, b.Router, b.Epoch = "", 0, "", 0
	return reflect.DeepEqual(a, b)
}

// leave seals a shard at its head in ClickHouse, or where it ends in SHARDS if that is
// higher: SHARDS lost its end, and its next positions were given already.
func (r *Repairer) leave(ctx context.Context, ref schemas.ShardRef) error {
	head, rows, err := r.db.HeadRows(ctx, ref)
	if err != nil {
		return err
	}
	last, err := r.lastFrame(ctx, ref)
	if err != nil {
		return err
	}
	if last.Pos > head {
		head, rows = last.Pos, last.ShardRows
	}
	record, err := r.reg.ErasureRecord(ctx, ref)
	if err != nil {
		return err
	}
	h, err := r.reg.Head(ctx, ref.Topic, ref.Month)
	if err != nil {
		return err
	}
	// The entry first: a router that finds a sealed shard in the head stops, but one
	// that finds none would take the shard for one that was left in good order.
	sealed := false
	e, err := r.reg.Correct(ctx, ref, func(s *registry.Shard) bool {
		sealed = s.Status == registry.Active
		if sealed {
			// Its last rows may have been erased.
			s.Status, s.SealedAt, s.Rows, s.Reason = registry.Sealed, given(s, &record, head), rows, "its frames' end is gone"
			if s.SealedAt == last.Pos {
				s.Ended = registry.Point{Era: last.SourceEra, Seq: last.SourceSeq}
			}
		}
		return sealed
	})
	if err != nil {
		return err
	}
	if sealed {
		r.crash("after seal")
	}
	h.Made(&e)
	changed := false
	for lane, id := range h.Active {
		if id == ref.ID {
			delete(h.Active, lane)
			changed = true
		}
	}
	if _, ok := h.Retired[ref.ID]; ok {
		delete(h.Retired, ref.ID)
		changed = true
	}
	if !changed {
		return nil
	}
	return r.reg.RestoreHead(ctx, nil, h)
}

// completeEnd has a shard that was left end where ClickHouse or SHARDS has its last frame:
// those above are routed again. It settles the positions behind the last frame in SHARDS.
func (r *Repairer) completeEnd(ctx context.Context, ref schemas.ShardRef) error {
	head, rows, err := r.db.HeadRows(ctx, ref)
	if err != nil {
		return err
	}
	record, err := r.reg.ErasureRecord(ctx, ref)
	if err != nil {
		return err
	}
	last, err := r.lastFrame(ctx, ref)
	if err != nil {
		return err
	}
	e, err := r.reg.Correct(ctx, ref, func(s *registry.Shard) bool {
		end := max(given(s, &record, head), last.Pos)
		if s.Status == registry.Closed || s.Gone() || s.Until() <= end {
			return false
		}
		_, gone := record.GoneUpTo(end)
		if s.Status == registry.Active {
			s.LeftAt = end
		} else {
			s.SealedAt = end
		}
		s.Rows = max(rows+gone, last.ShardRows)
		return true
	})
	if err != nil || last.Pos >= e.Until() {
		return err
	}
	return r.complete(ctx, &Action{ref: ref, From: last.Pos + 1, To: e.Until()})
}

// lastFrame is the last frame SHARDS has of a shard, by its headers; zero when there is none.
func (r *Repairer) lastFrame(ctx context.Context, ref schemas.ShardRef) (schemas.Placed, error) {
	msg, err := streams.DecideLast(ctx, r.js, schemas.StreamShards, ref.Subject())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return schemas.Placed{}, nil
	}
	if err != nil {
		return schemas.Placed{}, err
	}
	return schemas.ParsePlaced(msg.Header)
}
