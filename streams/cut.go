package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// Misfit says why EVENTS is not the stream that a lane's checkpoint saw, or "":
// see schemas.Checkpoint.Misfit. filter are the lane's subjects.
func Misfit(ctx context.Context, js jetstream.JetStream, filter string, cp *schemas.Checkpoint) (string, error) {
	at, err := sourceAt(ctx, js, filter, cp)
	return cp.Misfit(at), err
}

// sourceAt looks at EVENTS where a checkpoint stands.
func sourceAt(ctx context.Context, js jetstream.JetStream, filter string, cp *schemas.Checkpoint) (at schemas.SourceAt, err error) {
	if cp.Source == 0 {
		return at, nil
	}
	info, err := Info(ctx, js, cp.Stream())
	if err != nil {
		return at, fmt.Errorf("streams: %s: %w", cp.Stream(), err)
	}
	if at.LastSeq = info.State.LastSeq; at.LastSeq < cp.Source {
		return at, nil
	}
	msg, err := DecideAt(ctx, js, cp.Stream(), cp.Anchor())
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return at, nil
	case err != nil:
		return at, fmt.Errorf("streams: message %d of %s: %w", cp.Anchor(), cp.Stream(), err)
	}
	at.Found, at.Stored, at.Digest = true, msg.Time.UnixNano(), schemas.SourceDigest(msg.Data)
	if cp.At == 0 {
		return at, nil
	}
	msg, err = DecideNext(ctx, js, cp.Stream(), filter, cp.At+1)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return at, fmt.Errorf("streams: %s behind message %d of %s: %w", filter, cp.At, cp.Stream(), err)
	}
	at.Between = err == nil && msg.Sequence <= cp.Source
	return at, nil
}

// Resumption is where a lane goes on after EVENTS lost its end.
type Resumption struct {
	// Proven: EVENTS gave sequences again. Otherwise SHARDS may have been restored from an older copy.
	Proven bool
	After  uint64 // 0: from the beginning
	Digest string // of message After
	Stored int64  // of message After, unix ns
	Cut    schemas.Cut
	// Doubt are messages above After that may have been routed: see
	// schemas.Checkpoint.Resume.
	Doubt []schemas.EventsMessage
}

// Resume finds where a lane goes on whose checkpoint does not fit EVENTS. It reads
// the headers of the messages of EVENTS up to the checkpoint, and of everything in
// SHARDS that came of them.
func Resume(ctx context.Context, js jetstream.JetStream, filter string, cp *schemas.Checkpoint) (Resumption, error) {
	var r Resumption
	at, err := sourceAt(ctx, js, filter, cp)
	if err != nil {
		return r, err
	}
	lane, err := eventsMessages(ctx, js, filter, 1, cp.Source)
	if err != nil {
		return r, err
	}
	lowest := cp.Source
	if len(lane) > 0 {
		lowest = lane[0].Seq
	}
	left, err := tracesOf(ctx, js, lowest, cp)
	if err != nil {
		return r, err
	}
	r.After, r.Doubt = cp.Resume(lane, left.traces)
	present, err := eventsMessages(ctx, js, schemas.SubjectsEvents, max(r.After, 1), cp.Source)
	if err != nil {
		return r, err
	}
	r.Proven = cp.GivenAgain(at, present)
	r.Cut = cp.CutOf(present, left.traces, left.holes, left.purged, time.Now().UnixNano())
	return r, r.At(ctx, js, r.After)
}

// At has the lane go on behind another message.
func (r *Resumption) At(ctx context.Context, js jetstream.JetStream, after uint64) error {
	r.After, r.Digest, r.Stored = after, "", 0
	if after == 0 {
		return nil
	}
	msg, err := DecideAt(ctx, js, schemas.StreamEvents, after)
	if err != nil {
		return fmt.Errorf("streams: message %d of %s: %w", after, schemas.StreamEvents, err)
	}
	r.Digest, r.Stored = schemas.SourceDigest(msg.Data), msg.Time.UnixNano()
	return nil
}

// eventsMessages are the messages under a filter between two sequences.
func eventsMessages(ctx context.Context, js jetstream.JetStream, filter string, from, to uint64) ([]schemas.EventsMessage, error) {
	var out []schemas.EventsMessage
	_, err := Headers(ctx, js, schemas.StreamEvents, filter, from, func(msg *Message) error {
		if msg.Sequence > to {
			return nil
		}
		m := schemas.EventsMessage{Seq: msg.Sequence, Stored: msg.Time.UnixNano(), Blank: schemas.IsBlank(msg.Header, nil)}
		if f, err := schemas.ParseFrame(msg.Header); err == nil {
			m.Frame = &f
		}
		out = append(out, m)
		return nil
	})
	return out, err
}

// leftover is what SHARDS holds of what messages of EVENTS became.
type leftover struct {
	traces schemas.Traces
	holes  []schemas.Hole
	// purged: messages up to here may have left traces that were purged since. It is where
	// the first frames come from that SHARDS still holds of shards that had others before.
	purged uint64
}

// tracesOf are the traces in SHARDS of the messages of EVENTS from a sequence on and
// up to a checkpoint, of every topic. Frames and dead letters of a front say sequences of
// another stream and tell nothing.
func tracesOf(ctx context.Context, js jetstream.JetStream, from uint64, cp *schemas.Checkpoint) (left leftover, err error) {
	left.traces = schemas.Traces{}
	add := func(t schemas.Trace, at time.Time) {
		if t.At = at.UnixNano(); t.Seq >= from && t.Seq <= cp.Source {
			left.traces.Add(t)
		}
	}
	last := map[schemas.Shard]schemas.Placed{}
	_, err = Frames(ctx, js, schemas.SubjectsShards, func(ref schemas.ShardRef, p schemas.Placed, _ uint64, at time.Time) error {
		if p.SourceFirst != 0 {
			return nil
		}
		before, met := last[ref.ID]
		if h, ok := schemas.HoleBetween(&before, &p, cp.Source); met && ok {
			left.holes = append(left.holes, h)
		}
		if !met && p.Pos > 1 && p.SourceEra == cp.Era && p.SourceSeq <= cp.Source {
			left.purged = max(left.purged, p.SourceSeq-1)
		}
		last[ref.ID] = schemas.Placed{Pos: p.Pos, SourceSeq: p.SourceSeq, SourceEra: p.SourceEra}
		add(schemas.Trace{Seq: p.SourceSeq, Stored: p.SourceTime, Producer: p.Producer, FrameSeq: p.Seq}, at)
		return nil
	})
	if err != nil {
		return leftover{}, err
	}
	_, err = Headers(ctx, js, schemas.StreamShards, schemas.SubjectsDead, 1, func(msg *Message) error {
		source := schemas.SourceOf(msg.Header)
		if source.Seq > 0 && !schemas.OfFront(msg.Header.Get(schemas.HeaderSourceSubject)) {
			add(schemas.Trace{Seq: source.Seq, Stored: source.Stored}, msg.Time)
		}
		return nil
	})
	if err != nil {
		return leftover{}, err
	}
	err = EachCheckpoint(ctx, js, schemas.SubjectsRouted, func(lane *Routed) error {
		if lane.Err != nil || lane.Front != "" {
			return nil
		}
		for _, m := range lane.Silent {
			add(schemas.Trace{Seq: m.Seq, Stored: m.Stored}, time.Unix(0, m.Stored))
		}
		return nil
	})
	if err != nil {
		return leftover{}, err
	}
	return left, nil
}
