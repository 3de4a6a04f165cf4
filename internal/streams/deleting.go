package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// WhileCopied is what a removal of messages does while the streams are being copied. Each caller decides. A copy takes tables first, then
// the registry, then streams, and cuts those at its point in time. What leaves a stream meanwhile may be in none of its parts: where it went
// to was copied too early, or has it above the point.
//
// It is asked right before each removal. Where no copy is under way then, one that begins later finds what goes where it went to.
type WhileCopied int

const (
	// Refuse returns ErrCopying. The caller comes again, or says so to who asked.
	Refuse WhileCopied = iota
	// Tell tells the copy that it is not whole, so that it ends and is run again: the caller cannot wait.
	Tell
	// Unneeded asks nothing: no copy needs what goes, or the caller has asked.
	Unneeded
)

func (w WhileCopied) ask(ctx context.Context, js jetstream.JetStream) error {
	if w == Unneeded {
		return nil
	}
	copies, err := Copied(ctx, js)
	switch {
	case err != nil:
		return fmt.Errorf("streams: whether they are being copied: %w", err)
	case len(copies) == 0:
		return nil
	case w == Tell:
		return PurgeAnyway(ctx, js, copies)
	}
	return ErrCopying
}

// MayTake returns ErrCopying while the streams are being copied: for what would remove messages by many steps, before the first.
func MayTake(ctx context.Context, js jetstream.JetStream) error { return Refuse.ask(ctx, js) }

// How long Delete rests after it overwrote a message: NATS writes the whole block that the
// message lies in again, up to 8 MiB, and syncs it (eraseMsg of its file store, 2.15). Without
// rests the writers and readers of all streams on the disk wait behind that.
const (
	pauseTimes = 2 // as long as the removal took
	maxPause   = 200 * time.Millisecond
)

// Delete removes a message, and overwrites it on disk where secure says so. A message
// that does not exist is removed.
func Delete(ctx context.Context, js jetstream.JetStream, s jetstream.Stream, seq uint64, secure bool, while WhileCopied) error {
	if err := while.ask(ctx, js); err != nil {
		return err
	}
	del := s.DeleteMsg
	if secure {
		del = s.SecureDeleteMsg
	}
	began := time.Now()
	_, err := Asked(ctx, js.Conn(), func(ctx context.Context) (struct{}, error) { return struct{}{}, del(ctx, seq) })
	if err == nil && secure {
		select {
		case <-ctx.Done(): // the caller's next step says so
		case <-time.After(min(pauseTimes*time.Since(began), maxPause)):
		}
	}
	if err == nil || errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	// nats.go gives the server's answer as text alone.
	if _, look := DecideAt(ctx, js, s.CachedInfo().Config.Name, seq); errors.Is(look, jetstream.ErrMsgNotFound) {
		return nil
	}
	return fmt.Errorf("streams: removing message %d of %s: %w", seq, s.CachedInfo().Config.Name, err)
}

// Purge removes all messages of a subject filter from a stream.
func Purge(ctx context.Context, js jetstream.JetStream, stream, filter string, while WhileCopied) error {
	s, err := Open(ctx, js, stream)
	if err != nil {
		return fmt.Errorf("streams: purging %s of %s: %w", filter, stream, err)
	}
	return PurgeWith(ctx, js, s, filter, while)
}

// PurgeWith removes the messages of a subject filter, by more options of the server's:
// below a sequence, or all but the last. To ask for it twice does no harm.
func PurgeWith(ctx context.Context, js jetstream.JetStream, s jetstream.Stream, filter string, while WhileCopied, more ...jetstream.StreamPurgeOpt) error {
	if err := while.ask(ctx, js); err != nil {
		return err
	}
	opts := append([]jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(filter)}, more...)
	if _, err := Asked(ctx, js.Conn(), func(ctx context.Context) (struct{}, error) { return struct{}{}, s.Purge(ctx, opts...) }); err != nil {
		return fmt.Errorf("streams: purging %s of %s: %w", filter, s.CachedInfo().Config.Name, err)
	}
	return nil
}

// Discard removes a stream that holds no message: a mark, or a trial. One that does not exist is removed.
func Discard(ctx context.Context, js jetstream.JetStream, stream string) error {
	_, err := Asked(ctx, js.Conn(), func(ctx context.Context) (struct{}, error) { return struct{}{}, js.DeleteStream(ctx, stream) })
	if err == nil || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return fmt.Errorf("streams: removing %s: %w", stream, err)
}
