package producer

import (
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

// Why an event or a frame did not get through. Events that break a limit get
// the errors of schemas instead.
var (
	// ErrUnknownTopic: Connect, New or Memory.Producer were given a topic that is not
	// declared, or it was removed since: then every event is refused. Declare it with `almanac topics apply` or in the settings of a router, and try again.
	ErrUnknownTopic = schemas.ErrUnknownTopic
	// ErrConfig: a field of Config is out of its bounds.
	ErrConfig = errors.New("bad producer config")
	// ErrConnect: the first connection to NATS failed.
	ErrConnect = errors.New("cannot connect")
	// ErrClosed: Close was called. The event was not taken, or its frame was
	// given up before it was sent.
	ErrClosed = errors.New("producer is closed")
	// ErrOutcomeUnknown: the event was taken, and whether it is stored is not
	// known yet. After Publish's context ended, the producer still holds the
	// event and goes on sending it. After Close it does not; the last attempt
	// may have been stored all the same. Logging the event again makes a second
	// one, unless it keeps its ID and a reader removes the pair.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrNotStored: the stream or the connection refused a frame. Hooks.OnError
	// hears it while the frame is sent again; Publish and Submit get it only
	// when the refusal is final.
	ErrNotStored = errors.New("frame not stored")
	// ErrEvicted: the frame was dropped for newer ones, under DropOldest.
	ErrEvicted = errors.New("dropped for newer events")
	// ErrSpooled: the event is durable in the spool on this machine's disk, and
	// not known to be stored by the server. This producer sends it, or the next
	// one with the same directory. From Close: so many frames stay there.
	ErrSpooled = errors.New("in the spool, not yet stored")
	// ErrKey: a batch with a key cannot be taken as it is.
	ErrKey = errors.New("bad keyed batch")
	// ErrSeries: a series was made by another producer.
	ErrSeries = errors.New("bad series")
	// ErrNotFlushed: Close ended before everything was stored.
	ErrNotFlushed = errors.New("not flushed")
)

// Causes of drops beside those of schemas.Reason, which name the limit an event
// broke.
const (
	// CauseBufferFull: the buffer had no room for the event.
	CauseBufferFull = "buffer-full"
	// CauseOldest: its frame was dropped for newer events (DropOldest).
	CauseOldest = "oldest"
	// CauseClosed: it came after Close, or Close could not flush it.
	CauseClosed = "closed"
	// CauseMaxPayload: the server refuses frames of that size.
	CauseMaxPayload = "max-payload"
	// CauseConnectionClosed: the caller closed the connection given to New.
	CauseConnectionClosed = "connection-closed"
	// CauseTopicRemoved: the topic was removed while the producer ran.
	CauseTopicRemoved = "topic-removed"
	// CauseEncode: the frame could not be encoded within its limits.
	CauseEncode = "encode"
	// CauseSpoolFull: the buffer had no room, because the spool has reached its
	// bound, or its disk is full.
	CauseSpoolFull = "spool-full"
	// CauseSpoolFailed: the buffer had no room, because the spool's disk fails.
	CauseSpoolFailed = "spool-failed"
	// CauseSpoolDamaged: its frame did not come back from the spool as it was
	// written.
	CauseSpoolDamaged = "spool-damaged"
)

// errSentThenClosed is for frames that were sent and not answered at the end.
var errSentThenClosed = fmt.Errorf("%w: %w", ErrClosed, ErrOutcomeUnknown)

// errOnDisk ends the flush of Close where the disk has, or takes, what is left.
var errOnDisk = errors.New("on disk")

// errLost is for those who wait for a frame the spool lost.
var errLost = fmt.Errorf("%w: its frame in the spool was damaged", ErrNotStored)

func tooLarge(n, limit int) error {
	return fmt.Errorf("%w: %d bytes encoded, the limit is %d", schemas.ErrFrameTooLarge, n, limit)
}

func refusal(err error) error {
	if errors.Is(err, ErrNotStored) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotStored, err)
}
