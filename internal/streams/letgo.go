package streams

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// LetGo says why EVENTS no longer has all that a lane was routed from between a checkpoint and one that knows more, or "".
// It lets go of what was routed after a while, from the oldest on: so where it still has a message up to the older
// checkpoint it has all above. Else what it has is counted, which tells nothing where some of it is bare JSON: of
// one such message come any number of frames and letters. filter are the lane's subjects.
func LetGo(ctx context.Context, js jetstream.JetStream, filter string, cp, known *checkpoint.Checkpoint) (string, error) {
	if !cp.Forgets(known) || known.Front != "" {
		return "", nil
	}
	first, err := DecideNext(ctx, js, schemas.StreamEvents, filter, 1)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return "", fmt.Errorf("streams: %s: %w", filter, err)
	}
	if err == nil && first.Sequence <= cp.Source {
		return "", nil
	}
	msgs, err := eventsMessages(ctx, js, filter, cp.Source+1, known.Source)
	if err != nil {
		return "", err
	}
	frames, letters := known.Frames-min(known.Frames, cp.Frames), known.Dead-min(known.Dead, cp.Dead)
	if have, exact := distinct(msgs); exact && (have < frames || letters > 0 && have < frames+letters) {
		return fmt.Sprintf("%s has let go of some of the %d frames that came from it up to message %d, and has %d", schemas.StreamEvents, frames, known.Source, have), nil
	}
	return "", nil
}

// distinct counts the frames of messages, each once however often it came. It is not exact where a message is not a
// frame, or does not say whose it is.
func distinct(msgs []checkpoint.EventsMessage) (n uint64, exact bool) {
	exact = true
	type frame struct {
		producer string
		seq      uint64
	}
	seen := map[frame]bool{}
	for i := range msgs {
		f := msgs[i].Frame
		switch {
		case msgs[i].Blank:
		case f == nil || f.Producer == "":
			n, exact = n+1, false
		case !seen[frame{f.Producer, f.Seq}]:
			seen[frame{f.Producer, f.Seq}] = true
			n++
		}
	}
	return n, exact
}
