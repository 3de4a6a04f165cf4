package producer

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// laneFrame is events of one month and lane on their way through four states:
// open and closed (builder), encoded (payload), sent (seq). A frame's fields are
// its lane's, but for builder while a goroutine has claimed it for encoding.
type laneFrame struct {
	month    schemas.Month
	from, to int64 // the month, in unix ns
	opened   time.Time
	lingers  int // that it waits for company, from 1
	closed   time.Time
	order    uint64 // counts closed frames of the producer

	events  int
	charge  int // bytes of the buffer it holds
	waiters []waiter
	awaited bool     // Publish or Submit put an event in: never evicted
	urgent  bool     // Publish did: no linger when the lane is idle
	batch   *barrier // the last batch that put events in, and waits for it

	keyed *Batch        // whose frame it is, under a key
	part  *schemas.Part // of a keyed batch; else nil

	builder  *frame.Builder
	claimed  bool // a goroutine encodes it
	resolved bool // stored or given up

	head    schemas.Frame
	payload []byte

	seq      uint64
	attempts int
	refused  bool      // known not to be stored
	due      time.Time // when to send it again
	sent     time.Time // first

	spooled bool // a record of the spool has it
	loaded  bool // it was read from there, and holds nothing of the buffer
}

// waiter is a caller that waits for a frame. done is called by the sender, once
// when the frame is settled. When the frame is durable in the spool and has left
// memory, done hears ErrSpooled: that is the last word unless stay is set.
type waiter struct {
	done func(error)
	stay bool
	left *atomic.Bool // with stay: the caller no longer listens

	batch *barrier // in place of done: waits once for each frame
}

// claim returns the oldest closed frame that no goroutine encodes yet, or nil. Caller
// holds mu.
func (l *lane) claim() *laneFrame {
	for _, f := range l.queue {
		if f.builder != nil && !f.claimed {
			f.claimed = true
			return f
		}
	}
	return nil
}

// encode turns a claimed frame into its payload and frees its builder.
func (l *lane) encode(f *laneFrame) {
	payload, _ := l.p.payloads.get()
	head, payload := f.builder.EncodeTo(payload[:0])
	f.builder.Reset()
	l.p.builders.put(f.builder)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.p.unencoded.Add(-1)
	f.builder, f.head = nil, head
	if f.resolved { // given up meanwhile
		l.p.payloads.put(payload)
		return
	}
	f.payload = payload
	switch {
	case len(payload) > l.p.frameBytes:
		i := slices.Index(l.queue, f)
		l.queue = slices.Delete(l.queue, i, i+1)
		l.giveUp(f, CauseEncode, tooLarge(len(payload), l.p.frameBytes))
	default:
		// From here it holds what it holds encoded.
		held := len(payload) + headerBytes
		l.p.buffer.release(0, f.charge-held)
		f.charge = held
	}
}
