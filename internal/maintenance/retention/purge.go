package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/reconcile"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/almanac-events/almanac/schemas/wire"
)

// snapshot is how far each lane was routed at a time.
type snapshot struct {
	at   time.Time
	upTo map[lane]checkpoint.Checkpoint
}

type lane struct{ topic, token string }

// A stream that is fuller than pressed gives up what it keeps for comfort, the
// replay window and most of the keep time, before it must refuse what is new; shards
// are then purged until the stream is relaxed. minKeep stays: the longest a
// reader may be between a checkpoint and the frames above it.
const (
	pressed = 0.8
	relaxed = 0.6
	minKeep = 30 * time.Second
)

func (j *Janitor) sweep(ctx context.Context, now time.Time) error {
	return inTurn(
		func() error { return j.sweepEvents(ctx, now) },
		func() error { return j.sweepCheckpoints(ctx) },
		func() error { return j.sweepGiven(ctx, now) },
		func() error { return j.sweepShards(ctx, now) },
	)
}

// fill is how full a stream is, 0 to 1; 0 when it has no bound.
func fill(info *jetstream.StreamInfo) float64 {
	if info.Config.MaxBytes <= 0 {
		return 0
	}
	return float64(info.State.Bytes) / float64(info.Config.MaxBytes)
}

// sweepEvents purges, lane by lane, what had been routed KeepTime ago. The
// message the checkpoint names stays, so that a rollback shows.
func (j *Janitor) sweepEvents(ctx context.Context, now time.Time) error {
	upTo, err := routedUpTo(ctx, j.js)
	if err != nil {
		return err
	}
	events, err := streams.Open(ctx, j.js, schemas.StreamEvents)
	if err != nil {
		return fmt.Errorf("janitor: %s: %w", schemas.StreamEvents, err)
	}
	settle := j.cfg.KeepTime
	if fill(events.CachedInfo()) > pressed {
		settle = min(settle, minKeep)
	}
	j.past = append(j.past, snapshot{now, upTo})
	var ripe *snapshot
	for len(j.past) > 0 && now.Sub(j.past[0].at) >= settle {
		ripe, j.past = &j.past[0], j.past[1:]
	}
	if ripe == nil {
		return nil
	}
	subjects, err := subjectsByLane(ctx, j.js)
	if err != nil {
		return err
	}
	var failed []error
	for l, then := range ripe.upTo {
		filter := schemas.LaneFilter(l.topic, l.token)
		now, ok := upTo[l]
		if !ok || now.Era != then.Era {
			continue // EVENTS lost its end since, and its sequences are other messages'
		}
		if why, err := streams.Misfit(ctx, j.js, filter, &now); err != nil || why != "" {
			failed = append(failed, err)
			continue // until its router or a repair has settled that
		}
		seq := min(then.Anchor(), now.Anchor())
		if err := j.purgeLane(ctx, events, subjects[l], seq); err != nil {
			failed = append(failed, err)
			if errors.Is(err, streams.ErrCopying) {
				break
			}
		}
	}
	return errors.Join(failed...)
}

// purgeLane purges a lane's messages below a sequence, month by month. Each subject is
// literal: a purge by one with a wildcard loads every block of the stream up to the last
// that has the lane, ten minutes of events, and the server keeps them in memory, because
// another lane's purge follows. By a literal one it stops at the first block that has
// nothing to purge.
func (j *Janitor) purgeLane(ctx context.Context, events jetstream.Stream, subjects []string, seq uint64) error {
	for _, subject := range subjects {
		if err := j.purge(ctx, events, subject, seq); err != nil {
			return err
		}
	}
	return nil
}

// subjectsByLane are the subjects of EVENTS that have messages.
func subjectsByLane(ctx context.Context, js jetstream.JetStream) (map[lane][]string, error) {
	listed, err := streams.Subjects(ctx, js, schemas.StreamEvents, schemas.SubjectsEvents)
	if err != nil {
		return nil, fmt.Errorf("janitor: %w", err)
	}
	subjects := map[lane][]string{}
	for subject := range listed {
		if topic, _, token, err := schemas.EventsTokens(subject); err == nil && schemas.Literal(subject) {
			subjects[lane{topic, token}] = append(subjects[lane{topic, token}], subject)
		}
	}
	return subjects, nil
}

// routedUpTo reads how far each lane is routed. What is not a lane's checkpoint is
// nothing to purge by.
func routedUpTo(ctx context.Context, js jetstream.JetStream) (map[lane]checkpoint.Checkpoint, error) {
	upTo := map[lane]checkpoint.Checkpoint{}
	err := streams.EachCheckpoint(ctx, js, schemas.SubjectsRouted, func(cp *streams.Routed) error {
		if cp.Err == nil && cp.Front == "" && cp.Topic != schemas.NoTopic && schemas.Literal(cp.Subject) && cp.Source > 1 {
			upTo[lane{cp.Topic, cp.Lane}] = checkpoint.Checkpoint{Source: cp.Source, Digest: cp.Digest, Stored: cp.Stored, At: cp.At, Era: cp.Era}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("janitor: checkpoints: %w", err)
	}
	return upTo, nil
}

// sweepCheckpoints keeps the last checkpoint of each lane, and what lies above it: a message that is
// not a checkpoint must not cost the lane its own. It stops below the first such message, which was
// accepted, so that a router keeps a letter of it first.
func (j *Janitor) sweepCheckpoints(ctx context.Context) error {
	subjects, err := streams.Subjects(ctx, j.js, schemas.StreamShards, schemas.SubjectsRouted)
	if err != nil {
		return fmt.Errorf("janitor: %w", err)
	}
	upTo := map[string]uint64{}
	for subject, n := range subjects {
		if n < 2 || !schemas.Literal(subject) {
			continue
		}
		last, err := streams.Checkpoint(ctx, j.js, subject)
		if err != nil {
			return fmt.Errorf("janitor: %w", err)
		}
		if last.Err != nil || last.Seq == 0 {
			continue // a router sets it aside
		}
		if upTo[subject], err = j.firstForeign(ctx, subject, last.Seq); err != nil {
			return err
		}
	}
	for subject, seq := range upTo {
		if seq < 2 {
			continue // nothing is below it; older servers take 1 for no bound
		}
		if err := j.purge(ctx, j.shards, subject, seq); err != nil {
			return err
		}
	}
	return nil
}

// purge removes what a subject has below a sequence, unless a copy of the streams began since the round did: streams.ErrCopying then, which ends the round.
// A copy has tables to copy first, so what is asked here has its answer before that comes to streams.
func (j *Janitor) purge(ctx context.Context, s jetstream.Stream, subject string, seq uint64) error {
	if err := j.mayTake(ctx); err != nil {
		return err
	}
	if err := streams.PurgeWith(ctx, j.js, s, subject, streams.Unneeded, jetstream.WithPurgeSequence(seq)); err != nil {
		return fmt.Errorf("janitor: %w", err)
	}
	return nil
}

// mayTake returns streams.ErrCopying while nothing may be taken out of the streams.
func (j *Janitor) mayTake(ctx context.Context) error {
	waits, err := j.yieldToCopy(ctx)
	if err == nil && waits {
		err = streams.ErrCopying
	}
	return err
}

// yieldToCopy reports whether a copy of the streams is under way, so that nothing may be purged. Where a stream is nearly full it
// tells the copies that they may not be whole, and reports false.
func (j *Janitor) yieldToCopy(ctx context.Context) (bool, error) {
	if j.alone {
		return false, nil
	}
	copies, err := streams.Copied(ctx, j.js)
	if err != nil || len(copies) == 0 {
		return false, err
	}
	full := 0.0
	for _, name := range []string{schemas.StreamEvents, schemas.StreamShards, schemas.StreamDocs, schemas.StreamTimers} {
		info, err := streams.Info(ctx, j.js, name)
		if err != nil {
			return false, fmt.Errorf("janitor: %s: %w", name, err)
		}
		full = max(full, fill(info))
	}
	if full <= pressed {
		return true, nil
	}
	return false, streams.PurgeAnyway(ctx, j.js, copies)
}

// firstForeign is the sequence of the first message of a subject that is not Almanac's, or upTo.
func (j *Janitor) firstForeign(ctx context.Context, subject string, upTo uint64) (uint64, error) {
	first := upTo
	_, err := streams.Headers(ctx, j.js, schemas.StreamShards, subject, 1, func(m *streams.Message) error {
		if m.Sequence < first && wire.Foreign(schemas.StreamShards, m.Subject, m.Header, nil, nil) != nil {
			first = m.Sequence
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("janitor: messages of %s: %w", subject, err)
	}
	return first, nil
}

// sweepShards purges frames that are stored, verified and older than the replay
// window, or as old as it takes when the stream is pressed; never a shard's last.
func (j *Janitor) sweepShards(ctx context.Context, now time.Time) error {
	info, err := streams.Info(ctx, j.js, schemas.StreamShards)
	if err != nil {
		return fmt.Errorf("janitor: %s: %w", schemas.StreamShards, err)
	}
	full := fill(info)
	if full <= pressed && now.Sub(j.sweptAt) < j.cfg.ReplayWindow/100 {
		return nil
	}
	j.sweptAt = now
	keepFrom, err := streams.FirstAfter(ctx, j.js, schemas.StreamShards, now.Add(-j.cfg.ReplayWindow))
	if err != nil {
		return err
	}
	if full > pressed {
		keepFrom = max(keepFrom, keepWhenPressed(info.State.Msgs, info.State.LastSeq, full))
	}
	if keepFrom <= info.State.FirstSeq {
		return nil
	}
	subjects, err := streams.Subjects(ctx, j.js, schemas.StreamShards, schemas.SubjectsShards)
	if err != nil {
		return fmt.Errorf("janitor: %w", err)
	}
	ledgers, err := j.cfg.Registry.Ledgers(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for subject, n := range subjects {
		if n < 2 {
			continue
		}
		err := j.sweepShard(ctx, subject, keepFrom, ledgers)
		failed = append(failed, err)
		if errors.Is(err, streams.ErrCopying) {
			j.sweptAt = time.Time{} // the others are not looked at yet
			break
		}
	}
	return errors.Join(failed...)
}

// keepWhenPressed is the sequence below which a stream must go to be relaxed, if
// its bytes lie evenly over its messages and these at its end. Its first sequence
// says nothing: the last frames of the oldest shards stay there forever.
func keepWhenPressed(msgs, last uint64, full float64) uint64 {
	return last - min(last, uint64(float64(msgs)*relaxed/full))
}

func (j *Janitor) sweepShard(ctx context.Context, subject string, keepFrom uint64, ledgers map[string]ledger.Erasures) error {
	ref, err := schemas.ParseShardSubject(subject)
	if err != nil {
		return nil // no shard's: nothing to purge by
	}
	pos, rows, err := j.cfg.DB.HeadRows(ctx, ref)
	if err != nil {
		return err
	}
	entry, err := j.cfg.Registry.Shard(ctx, ref)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	head := entry.Head(pos)
	if head == 0 {
		return nil
	}
	last, err := streams.DecideLast(ctx, j.js, schemas.StreamShards, subject)
	if err != nil {
		return fmt.Errorf("janitor: tail of %s: %w", ref, err)
	}
	at, err := streams.FindFrame(ctx, j.js, subject, head, last.Sequence)
	if err != nil {
		return err
	}
	p, err := streams.FrameFrom(ctx, j.js, subject, at)
	if err != nil {
		return err
	}
	if p.Pos != head || rows != p.ShardRows && !j.erased(ctx, ref, head, p.ShardRows, rows) {
		return fmt.Errorf("janitor: %s: %w: %d rows up to position %d, the frames brought %d; run `almanac verify %s`", ref, ErrUnverified, rows, head, p.ShardRows, ref.Topic)
	}
	if err := j.sameEvents(ctx, &entry, ref, at); err != nil {
		return err
	}
	if err := erasure.Pin(ctx, j.cfg.Registry, ref, ledgers[ref.Topic].Only(ledger.Waiting)); err != nil {
		return fmt.Errorf("janitor: %w", err)
	}
	return j.purge(ctx, j.shards, subject, min(keepFrom, at, last.Sequence))
}

// sameEvents refuses to purge where ClickHouse has other events at the head than its frame: the
// shard forked, with as many events as before, and no sink noticed yet. Its frames are nowhere else.
func (j *Janitor) sameEvents(ctx context.Context, entry *registry.Shard, ref schemas.ShardRef, seq uint64) error {
	msg, err := streams.DecideNext(ctx, j.js, schemas.StreamShards, ref.Subject(), seq)
	if err != nil {
		return fmt.Errorf("janitor: message %d of %s: %w", seq, ref, err)
	}
	p, err := schemas.ParsePlaced(msg.Header)
	if err != nil || p.Cleared != "" || entry.Floor >= p.Pos {
		return err
	}
	topic, err := j.cfg.Registry.Topic(ctx, ref.Topic)
	if err != nil {
		return err
	}
	found, err := reconcile.Look(ctx, j.cfg.DB, &topic, ref, &p, msg.Data, reconcile.Gone(ctx, j.cfg.Registry, ref))
	if err != nil || found == reconcile.Whole || found == reconcile.Partly {
		return err
	}
	return fmt.Errorf("janitor: %s: %w: ClickHouse has other events at position %d than %s; run `almanac verify %s`", ref, ErrUnverified, p.Pos, schemas.StreamShards, ref.Topic)
}

// erased reports whether erasures explain that a shard has fewer rows up to pos than its
// frames brought.
func (j *Janitor) erased(ctx context.Context, ref schemas.ShardRef, pos, brought, rows uint64) bool {
	t, err := j.cfg.Registry.ErasureRecord(ctx, ref)
	return err == nil && t.Explains(pos, brought, rows)
}
