package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// Misfit says why EVENTS is not the stream that a lane's checkpoint saw, or "":
// see checkpoint.Checkpoint.Misfit. filter are the lane's subjects.
func Misfit(ctx context.Context, js jetstream.JetStream, filter string, cp *checkpoint.Checkpoint) (string, error) {
	at, err := sourceAt(ctx, js, filter, cp)
	return cp.Misfit(at), err
}

// sourceAt looks at EVENTS where a checkpoint stands.
func sourceAt(ctx context.Context, js jetstream.JetStream, filter string, cp *checkpoint.Checkpoint) (at checkpoint.SourceAt, err error) {
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
	at.Found, at.Stored, at.Digest = true, msg.Time.UnixNano(), checkpoint.SourceDigest(msg.Data)
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
	Cut    checkpoint.Cut
	// Doubt are messages above After that may have been routed: see
	// checkpoint.Checkpoint.Resume.
	Doubt []checkpoint.EventsMessage
}

// Window bounds what Resume reads at first of streams that may be long.
type Window struct {
	// Span is how many sequences of EVENTS below the checkpoint are looked at.
	Span uint64
	// Margin is how far the clocks may differ that two streams were stored by. What
	// SHARDS holds of a message was stored after it.
	Margin time.Duration
}

// nearEnd is where a cut mostly is: after a crash NATS reads its last block again, 8 MiB at
// most, and ends the stream at what it cannot read there. 4,096 frames are eight million events
// at full speed. A minute is far more than clocks differ that are set by the network.
var nearEnd = Window{Span: 4096, Margin: time.Minute}

// widened is by how much a window grows that was too small: all of a long stream is read
// a seventh more than once then.
const widened = 8

// Taken lists the messages of EVENTS of which purges took what SHARDS had, of every topic. It is asked after SHARDS
// was read: what goes is noted before.
type Taken func(context.Context) ([]checkpoint.Silent, error)

// Resume finds where a lane goes on whose checkpoint does not fit EVENTS. It reads
// the headers of the messages of EVENTS up to the checkpoint, and of everything in
// SHARDS that came of them, from the end on as far back as it takes.
func Resume(ctx context.Context, js jetstream.JetStream, filter string, cp *checkpoint.Checkpoint, taken Taken) (Resumption, error) {
	return ResumeWithin(ctx, js, filter, cp, nearEnd, taken)
}

// ResumeWithin is Resume with a first window of one's own.
func ResumeWithin(ctx context.Context, js jetstream.JetStream, filter string, cp *checkpoint.Checkpoint, w Window, taken Taken) (Resumption, error) {
	at, err := sourceAt(ctx, js, filter, cp)
	if err != nil {
		return Resumption{}, err
	}
	for ; w.Span > 0 && w.Span < cp.Source; w.Span *= widened {
		r, ok, err := resumeNear(ctx, js, filter, cp, at, w, taken)
		if err != nil || ok {
			return r, err
		}
	}
	lane, err := eventsMessages(ctx, js, filter, 1, cp.Source)
	if err != nil {
		return Resumption{}, err
	}
	lowest := uint64(1)
	if len(lane) > 0 {
		lowest = lane[0].Seq
	} else { // a cut took what is above the last that stayed of all lanes
		stayed, err := eventsMessages(ctx, js, schemas.SubjectsEvents, 1, cp.Source)
		if err != nil {
			return Resumption{}, err
		}
		for i := range stayed {
			if stayed[i].Stored <= cp.Stored {
				lowest = stayed[i].Seq + 1
			}
		}
	}
	left, err := tracesOf(ctx, js, 1, lowest, cp, taken)
	if err != nil {
		return Resumption{}, err
	}
	return resumption(ctx, js, cp, at, lane, &left)
}

// resumeNear is Resume by what stands near the ends of both streams. It is the same as by
// all of them, ok, where SHARDS has in its window what a message of the lane became that is
// still there: a lane is routed in order, so what became of all above is in the window
// as well. Of other lanes time alone tells that.
func resumeNear(ctx context.Context, js jetstream.JetStream, filter string, cp *checkpoint.Checkpoint, at checkpoint.SourceAt, w Window, taken Taken) (r Resumption, ok bool, err error) {
	lane, left, ok, err := near(ctx, js, filter, cp, w, taken)
	if err != nil || !ok {
		return r, false, err
	}
	if after, _ := cp.Resume(lane, left.routed); after == 0 {
		return r, false, nil
	}
	r, err = resumption(ctx, js, cp, at, lane, &left)
	return r, err == nil, err
}

// near reads the messages under a filter in a window below a checkpoint, and what SHARDS
// stored since the first of them. What it cannot tell without what stands before asks for
// a wider window, not ok: a shard that begins in it without its predecessor, since the janitor
// may have taken what is between.
func near(ctx context.Context, js jetstream.JetStream, filter string, cp *checkpoint.Checkpoint, w Window, taken Taken) (msgs []checkpoint.EventsMessage, left leftover, ok bool, err error) {
	msgs, err = eventsMessages(ctx, js, filter, cp.Source-w.Span, cp.Source)
	if err != nil || len(msgs) == 0 {
		return nil, left, false, err
	}
	start, err := FirstAfter(ctx, js, schemas.StreamShards, time.Unix(0, msgs[0].Stored).Add(-w.Margin))
	if err != nil {
		return nil, left, false, err
	}
	if left, err = tracesOf(ctx, js, start, msgs[0].Seq, cp, taken); err != nil {
		return nil, left, false, err
	}
	for _, f := range left.firsts {
		if whole, err := f.follows(ctx, js); err != nil || !whole {
			return nil, left, false, err
		}
	}
	left.purged = 0 // they follow what stands before the window
	return msgs, left, true, nil
}

// resumption is where a lane goes on by its messages and what they left.
func resumption(ctx context.Context, js jetstream.JetStream, cp *checkpoint.Checkpoint, at checkpoint.SourceAt, lane []checkpoint.EventsMessage, left *leftover) (r Resumption, err error) {
	left.noteSilent()
	r.After, r.Doubt = cp.Resume(lane, left.routed)
	present, err := eventsMessages(ctx, js, schemas.SubjectsEvents, max(r.After, 1), cp.Source)
	if err != nil {
		return r, err
	}
	r.Proven = cp.GivenAgain(at, present)
	r.Cut = cp.CutOf(present, left.routed, left.purged, time.Now().UnixNano())
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
	r.Digest, r.Stored = checkpoint.SourceDigest(msg.Data), msg.Time.UnixNano()
	return nil
}

// eventsMessages are the messages under a filter between two sequences.
func eventsMessages(ctx context.Context, js jetstream.JetStream, filter string, from, to uint64) ([]checkpoint.EventsMessage, error) {
	var out []checkpoint.EventsMessage
	_, err := Headers(ctx, js, schemas.StreamEvents, filter, from, func(msg *Message) error {
		if msg.Sequence > to {
			return nil
		}
		m := checkpoint.EventsMessage{Seq: msg.Sequence, Stored: msg.Time.UnixNano(), Blank: schemas.IsBlank(msg.Header, nil)}
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
	routed checkpoint.Traces  // frames and dead letters
	silent []checkpoint.Trace // of those that left nothing else, or nothing any more, by checkpoints and erasure records
	firsts []firstFrame       // of the shards that had others before
	// purged: messages up to here may have left traces that were purged since. It is where
	// the first frames come from that SHARDS still holds of shards that had others before.
	purged uint64
}

// noteSilent counts what left no trace of its own as routed.
func (l *leftover) noteSilent() {
	for _, t := range l.silent {
		l.routed.Add(t)
	}
}

// firstFrame is the first frame of a shard that was read.
type firstFrame struct {
	ref schemas.ShardRef
	pos uint64
	seq uint64 // in SHARDS
}

// follows reports whether SHARDS holds the frame before.
func (f *firstFrame) follows(ctx context.Context, js jetstream.JetStream) (bool, error) {
	seq, err := FindFrame(ctx, js, f.ref.Subject(), f.pos-1, f.seq)
	if err != nil {
		return false, err
	}
	p, err := FrameFrom(ctx, js, f.ref.Subject(), seq)
	return err == nil && p.Pos == f.pos-1, err
}

// tracesOf are the traces in SHARDS, from message start on, of the messages of EVENTS from
// a sequence on and up to a checkpoint, of every topic. Frames and dead letters of a
// front say sequences of another stream and tell nothing.
func tracesOf(ctx context.Context, js jetstream.JetStream, start, from uint64, cp *checkpoint.Checkpoint, taken Taken) (left leftover, err error) {
	left.routed = checkpoint.Traces{}
	within := func(seq uint64) bool { return seq >= from && seq <= cp.Source }
	met := map[schemas.Shard]bool{}
	_, err = FramesFrom(ctx, js, schemas.SubjectsShards, start, func(ref schemas.ShardRef, p schemas.Placed, seq uint64, at time.Time) error {
		if p.SourceFirst != 0 {
			return nil
		}
		if !met[ref.ID] && p.Pos > 1 {
			left.firsts = append(left.firsts, firstFrame{ref, p.Pos, seq})
			if p.SourceEra == cp.Era && p.SourceSeq <= cp.Source {
				left.purged = max(left.purged, p.SourceSeq-1)
			}
		}
		met[ref.ID] = true
		if within(p.SourceSeq) {
			left.routed.Add(checkpoint.Trace{Seq: p.SourceSeq, Stored: p.SourceTime, At: at.UnixNano(), Producer: p.Producer, FrameSeq: p.Seq})
		}
		return nil
	})
	if err != nil {
		return leftover{}, err
	}
	_, err = Headers(ctx, js, schemas.StreamShards, schemas.SubjectsDead, start, func(msg *Message) error {
		source := schemas.SourceOf(msg.Header)
		if within(source.Seq) && !schemas.OfFront(msg.Header.Get(schemas.HeaderSourceSubject)) {
			left.routed.Add(checkpoint.Trace{Seq: source.Seq, Stored: source.Stored, At: msg.Time.UnixNano()})
		}
		return nil
	})
	if err != nil {
		return leftover{}, err
	}
	silent, err := taken(ctx)
	if err != nil {
		return leftover{}, err
	}
	err = EachCheckpoint(ctx, js, schemas.SubjectsRouted, func(lane *Routed) error {
		if lane.Err == nil && lane.Front == "" {
			silent = append(silent, lane.Silent...)
		}
		return nil
	})
	if err != nil {
		return leftover{}, err
	}
	for _, m := range silent {
		if within(m.Seq) {
			left.silent = append(left.silent, checkpoint.Trace{Seq: m.Seq, Stored: m.Stored, At: m.Stored})
		}
	}
	return left, nil
}
