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

// EndCut compares EVENTS with the end that the registry remembers. why is empty when it
// fits. Otherwise cut is what EVENTS lost above its last message that stayed: messages
// that left no trace in SHARDS, and that no purge took. routed is asked for the sequence up to which lanes are known
// to have been routed although SHARDS lost the traces; 0: SHARDS has them all.
//
// A message at the remembered end may be purged since, once it was routed. Then a message
// below that is younger tells that sequences were given again.
func EndCut(ctx context.Context, js jetstream.JetStream, end checkpoint.StreamEnd, taken Taken, routed func() (uint64, error)) (cut checkpoint.Cut, why string, err error) {
	return EndCutWithin(ctx, js, end, nearEnd, taken, routed)
}

// EndCutWithin is EndCut with a first window of one's own.
func EndCutWithin(ctx context.Context, js jetstream.JetStream, end checkpoint.StreamEnd, w Window, taken Taken, routed func() (uint64, error)) (cut checkpoint.Cut, why string, err error) {
	point := end.Point()
	at, err := sourceAt(ctx, js, schemas.SubjectsEvents, &point)
	if err != nil || end.Seq == 0 {
		return cut, "", err
	}
	why = end.Misfit(at)
	if why == "" && (at.Found || end.Gone) {
		return cut, "", nil
	}
	for ; w.Span > 0 && w.Span < end.Seq; w.Span *= widened {
		present, left, ok, err := near(ctx, js, schemas.SubjectsEvents, &point, w, taken)
		if err != nil {
			return cut, "", err
		}
		// From the last message that stayed on all is from after the cut.
		if ok && present[0].Stored <= end.Stored {
			return endCut(&end, at, why, present, &left, routed)
		}
	}
	present, err := eventsMessages(ctx, js, schemas.SubjectsEvents, 1, end.Seq)
	if err != nil {
		return cut, "", err
	}
	left, err := tracesOf(ctx, js, 1, 1, &point, taken)
	if err != nil {
		return cut, "", err
	}
	return endCut(&end, at, why, present, &left, routed)
}

// endCut is EndCut by the messages up to the remembered end and what they left.
func endCut(end *checkpoint.StreamEnd, at checkpoint.SourceAt, why string, present []checkpoint.EventsMessage, left *leftover, routed func() (uint64, error)) (checkpoint.Cut, string, error) {
	point := end.Point()
	if why == "" {
		if !point.GivenAgain(at, present) {
			return checkpoint.Cut{}, "", nil
		}
		why = fmt.Sprintf("%s gave sequences again below message %d", end.Stream, end.Seq)
	}
	left.noteSilent()
	known, err := routed()
	if err != nil {
		return checkpoint.Cut{}, "", err
	}
	return point.CutOf(present, left.routed, max(left.purged, known, end.First-min(end.First, 1)), time.Now().UnixNano()), why, nil
}

// EndAt is the end of a stream as it stands, with what was known of its cuts.
func EndAt(ctx context.Context, js jetstream.JetStream, was checkpoint.StreamEnd) (checkpoint.StreamEnd, error) {
	info, err := Info(ctx, js, was.Stream)
	if err != nil {
		return was, err
	}
	if info.State.LastSeq == was.Seq {
		return was, nil
	}
	was.Seq, was.First, was.Gone = info.State.LastSeq, info.State.FirstSeq, false
	msg, err := DecideAt(ctx, js, was.Stream, was.Seq)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		was.Stored, was.Gone = EndOf(info).Stored, true
	case err != nil:
		return was, err
	default:
		was.Stored = msg.Time.UnixNano()
	}
	return was, nil
}
