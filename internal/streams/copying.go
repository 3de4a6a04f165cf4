package streams

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/schemas"
)

// A copy of the streams is read from one to the next. What a janitor purges meanwhile may be in none of them: a message of EVENTS that is routed
// after the copy's point in time, or the checkpoint before a newer one. So who copies says so, by an entry of the registry that he renews, and
// janitors wait. One whose stream is nearly full does not, and writes into that entry that it did.

const (
	copyingRenew = 10 * time.Second
	// copyingLasts is when NATS lets go of an entry that was not renewed.
	copyingLasts = time.Minute
	// copyingPrefix begins the names of these entries, among those that are written to try something.
	copyingPrefix = "copying-"

	copyingHeld   = `{"held":true}`
	copyingPurged = `{"purged":true}`
)

// Copying is a copy of the streams that is under way.
type Copying struct {
	js      jetstream.JetStream
	subject string
	stop    context.CancelFunc
	end     context.CancelCauseFunc
	done    chan struct{}

	mu   sync.Mutex
	seq  uint64
	lost error
}

// BeginCopying has janitors wait until End. The context that it returns ends, with ErrPurged as its cause, as soon as it is known that
// one did not.
func BeginCopying(ctx context.Context, js jetstream.JetStream) (context.Context, *Copying, error) {
	id := nats.NewInbox()[len(nats.InboxPrefix):]
	c := &Copying{js: js, subject: schemas.KVSubject(schemas.LeaseKey(schemas.RoleProbe, copyingPrefix+id)), done: make(chan struct{})}
	ctx, c.end = context.WithCancelCause(ctx)
	if err := c.Still(ctx); err != nil {
		c.end(err)
		return nil, nil, err
	}
	renewing, stop := context.WithCancel(ctx)
	c.stop = stop
	go func() {
		defer close(c.done)
		for range backoff.Ticks(renewing, copyingRenew) {
			if errors.Is(c.Still(renewing), ErrPurged) {
				return
			}
		}
	}()
	return ctx, c, nil
}

// Still returns ErrPurged where a janitor did not wait, or may not have.
func (c *Copying) Still(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return c.lost
	}
	ack, err := Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) {
		return c.js.Publish(ctx, c.subject, []byte(copyingHeld), jetstream.WithExpectLastSequencePerSubject(c.seq), jetstream.WithMsgTTL(copyingLasts))
	})
	if err == nil {
		c.seq = ack.Sequence
		return nil
	}
	if !LostRace(err) {
		return fmt.Errorf("streams: saying that they are being copied: %w", err)
	}
	now, err := DecideLast(ctx, c.js, schemas.KVStream, c.subject)
	switch {
	case err == nil && string(now.Data) == copyingHeld: // of this copy, whose name no other has: an answer to a write before was lost
		c.seq = now.Sequence
	case err == nil || errors.Is(err, jetstream.ErrMsgNotFound):
		c.lost = ErrPurged
		c.end(ErrPurged)
	}
	return errors.Join(c.lost, err)
}

// End lets janitors go on.
func (c *Copying) End(ctx context.Context) {
	c.stop()
	<-c.done
	c.end(nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	_, _ = c.js.Publish(ctx, c.subject, []byte("{}"), jetstream.WithMsgTTL(Expiring)) // else it ends by itself
}

// Copied are the copies that are under way, but for those which were told that they are not whole.
func Copied(ctx context.Context, js jetstream.JetStream) (subjects []string, err error) {
	prefix := schemas.KVSubject(schemas.LeaseKey(schemas.RoleProbe, copyingPrefix))
	err = Latest(ctx, js, schemas.KVStream, schemas.KVSubject(schemas.LeaseKeys(schemas.RoleProbe)), func(m *Message) error {
		if strings.HasPrefix(m.Subject, prefix) && string(m.Data) == copyingHeld {
			subjects = append(subjects, m.Subject)
		}
		return nil
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) { // a copy says so in the registry
		return nil, nil
	}
	return subjects, err
}

// PurgeAnyway tells copies that what they have may not be whole, before a purge that cannot wait.
func PurgeAnyway(ctx context.Context, js jetstream.JetStream, copies []string) error {
	for _, subject := range copies {
		_, err := Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) {
			return js.Publish(ctx, subject, []byte(copyingPurged), jetstream.WithMsgTTL(copyingLasts))
		})
		if err != nil {
			return fmt.Errorf("streams: telling a copy that streams are purged: %w", err)
		}
	}
	return nil
}
