package producer

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
)

// Batch is events that a caller hands over together, such as those of one request.
// It checks them before the producer takes any, so that a request can be refused
// whole. It is not safe for concurrent use.
//
//	b := p.NewBatch("")
//	err := b.Add(ev)       // refused events are not in the batch
//	err = b.Submit(ctx)    // the producer has them and goes on sending
//	err = b.Wait(ctx)      // they are stored
type Batch struct {
	p      *Producer
	keyed  *keyed // nil: without a key
	rows   []batched
	points []batchedPoint
	now    int64 // unix ns, of its points; 0: it does not have any
	bytes  int
	taken  atomic.Int64
	waits  *barrier
	frames int           // of a keyed batch
	again  atomic.Int64  // frames that the stream had already
	first  atomic.Uint64 // the lowest sequence of those; 0: none
}

// batched is an event of a batch, admitted.
type batched struct {
	ev Event
	admitted
	keyedEvent
}

// NewBatch returns an empty batch. With a key its events have frames of their own,
// which are named by the key and by the events as they were given: the same batch submitted
// again within schemas.GivenFor is stored once, by whichever producer of the
// topic, also after the topic got fields or rules. All events of a keyed batch must have a time. The policy Spool does not
// keep keys, and Submit refuses them there.
func (p *Producer) NewBatch(key string) *Batch {
	b := &Batch{p: p, waits: newBarrier()}
	if key != "" {
		b.keyed = newKeyed(p, key)
	}
	return b
}

// Add checks an event as Publish does and puts it into the batch. Its error says
// which limit the event breaks. The batch keeps the event's texts and attributes
// until it is submitted.
func (b *Batch) Add(ev Event) error { return b.AddOf(ev, nil) }

// AddOf is Add of an event that was read from source. In a batch with a key the source stands for the
// attributes, where it is not nil: it is the same text also when the topic has other fields the next time.
func (b *Batch) AddOf(ev Event, source []byte) error {
	var at keyedEvent
	undo := func() {}
	if b.keyed != nil {
		if ev.Time.IsZero() {
			return fmt.Errorf("%w: an event without a time in a batch with a key: now would differ the next time", ErrKey)
		}
		at, undo = b.keyed.look(&ev, source)
	}
	a, err := b.p.admit(&ev)
	if err != nil {
		undo()
		return err
	}
	b.rows = append(b.rows, batched{ev, a, at})
	b.bytes += a.size
	return nil
}

// Expect makes room for n more events at once. It is a hint.
func (b *Batch) Expect(n int) { b.rows = slices.Grow(b.rows, n) }

// ExpectPoints is Expect for points.
func (b *Batch) ExpectPoints(n int) { b.points = slices.Grow(b.points, n) }

// Len returns how many events the batch has, its points among them.
func (b *Batch) Len() int { return len(b.rows) + len(b.points) }

// Bytes returns what its events take of Config.BufferBytes together.
func (b *Batch) Bytes() int { return b.bytes }

// Submit hands all events over, waiting for room in the buffer until ctx ends. The
// events of an idle lane go at once, together. After an error Taken tells how many
// the producer had taken before; those it goes on sending.
func (b *Batch) Submit(ctx context.Context) error {
	if b.keyed != nil {
		return b.submitKeyed(ctx)
	}
	lanes := make([]bool, len(b.p.lanes))
	err := b.take(ctx, lanes)
	b.hurry(lanes)
	return err
}

// hurry sends what is open of the batch.
func (b *Batch) hurry(lanes []bool) {
	for i, touched := range lanes {
		if touched {
			b.p.lanes[i].hurry(b.waits)
		}
	}
}

func (b *Batch) take(ctx context.Context, lanes []bool) error {
	next := 0
	for i := range b.rows {
		if err := b.takePoints(ctx, lanes, &next, i); err != nil {
			return err
		}
		r := &b.rows[i]
		if err := b.takeOne(ctx, lanes, b.p.laneOf(&r.ev, r.admitted), &r.ev, nil, r.admitted); err != nil {
			return err
		}
	}
	return b.takePoints(ctx, lanes, &next, len(b.rows))
}

// takePoints takes the points, from next on, that come before an event of the batch.
func (b *Batch) takePoints(ctx context.Context, lanes []bool, next *int, before int) error {
	for ; *next < len(b.points) && b.points[*next].after <= before; *next++ {
		pt := &b.points[*next]
		if err := b.takeOne(ctx, lanes, pt.s.lane, nil, pt, pt.admitted(b.now)); err != nil {
			return err
		}
	}
	return nil
}

func (b *Batch) takeOne(ctx context.Context, lanes []bool, l *lane, ev *Event, pt *batchedPoint, a admitted) error {
	if !b.p.buffer.take(a.size) {
		b.hurry(lanes) // or the batch would wait for the linger of its own frames
		if err := b.p.buffer.wait(ctx, b.p.closing, a.size); err != nil {
			return b.refuse(err)
		}
	}
	if !b.p.addTo(l, ev, pt, a, waiter{batch: b.waits}, false) {
		return b.refuse(ErrClosed)
	}
	lanes[l.number] = true
	b.taken.Add(1)
	return nil
}

// refuse counts the events that were not taken.
func (b *Batch) refuse(err error) error {
	b.p.outer.mu.Lock()
	b.p.outer.refused += uint64(b.Len() - b.Taken())
	b.p.outer.mu.Unlock()
	return err
}

// Taken returns how many events the producer took: the first ones of the batch, or of
// a keyed batch whole frames. It may be called beside Submit.
func (b *Batch) Taken() int { return int(b.taken.Load()) }

// Wait returns when every event that was taken is stored. When ctx ends before that,
// the error wraps ErrOutcomeUnknown, and the producer goes on. Any other error says
// why events were given up. Call it once, after Submit.
func (b *Batch) Wait(ctx context.Context) error {
	err := b.waits.wait(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, context.Cause(ctx))
	}
	return err
}

// Repeated reports, after Wait, whether the stream had every frame of a keyed batch
// before this one was submitted.
func (b *Batch) Repeated() bool { return b.frames > 0 && int(b.again.Load()) == b.frames }

// RepeatedFrom returns, after Wait, the lowest sequence in EVENTS of the messages that a
// keyed batch met there under its ids, or 0. An erasure of what was accepted up to that
// sequence, or up to a later one, may mean events of the batch, which is not stored again.
func (b *Batch) RepeatedFrom() uint64 { return b.first.Load() }

// hadAt notes a frame that the stream had.
func (b *Batch) hadAt(seq uint64) {
	for {
		first := b.first.Load()
		if first != 0 && first <= seq || b.first.CompareAndSwap(first, seq) {
			return
		}
	}
}

// space takes room for one event, and waits for it until ctx ends.
func (p *Producer) space(ctx context.Context, size int) error {
	if p.buffer.take(size) {
		return nil
	}
	return p.buffer.wait(ctx, p.closing, size)
}

// hurry sends what is open of a batch as soon as the lane is idle.
func (l *lane) hurry(b *barrier) {
	l.mu.Lock()
	open := false
	for _, f := range l.open {
		if f.batch == b {
			f.urgent, open = true, true
		}
	}
	l.mu.Unlock()
	if open {
		l.p.sender.wake()
	}
}
