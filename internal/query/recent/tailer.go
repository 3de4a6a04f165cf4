package recent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// tailer brings what comes to a topic in one of the streams to its frame indexes, by one
// request of each query for all of them: a NATS server answers a connection's reads
// one after the other, and each waits for the batch that is being written.
type tailer struct {
	place              // of the whole topic
	cache *recentCache // the reader's: it counts outages, and bounds what all frame indexes hold
	// reading is held by who reads for a query: two at once, for one whose query came
	// too late for the first need not wait for its end.
	reading  chan struct{}
	sequence chan struct{} // held by who uses the fields below, and those of the frame indexes

	next    uint64                 // sequence to read next; 0: not begun
	begun   time.Time              // when the last reading that came to the end began
	ended   time.Time              // and ended, or gave a message to a frame index
	epoch   uint64                 // the connection's outages, as they were then
	indexes map[string]*frameIndex // by what their subjects are filtered by
	// generation counts how often the tailer was restarted.
	generation uint64

	// Of EVENTS: what queries go by, what the last one wanted, and whether a
	// goroutine reads ahead.
	snapshot atomic.Pointer[checkpoints]
	wanted   atomic.Pointer[wanted]
	ahead    atomic.Bool
}

const (
	// nearFrames, or recentFrames of a tailer that was read a moment ago, are asked for
	// with their payloads. They tell how large the others are: up to nearBytes are read
	// likewise, and aheadBytes where no query waits; beyond that headers alone, through a
	// consumer, whose four requests more take a second where the server is busy.
	nearFrames   = 64
	recentFrames = 1024
	nearBytes    = 8 << 20
	aheadBytes   = 64 << 20
)

// hold waits for the turn.
func (f *tailer) hold(ctx context.Context) error {
	select {
	case f.sequence <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if now := f.cache.epoch(); now != f.epoch { // who knows what the server has now
		f.clear()
		f.epoch = now
	}
	return nil
}

func (f *tailer) release() { <-f.sequence }

func (f *tailer) clear() {
	for _, t := range f.indexes {
		t.clear()
	}
	clear(f.indexes)
	f.next, f.begun = 0, time.Time{}
	f.generation++
	f.snapshot.Store(nil)
}

// frameIndex is the one of a filter, new when there was none.
func (f *tailer) frameIndex(filter string) *frameIndex {
	t := f.indexes[filter]
	if t == nil {
		t = &frameIndex{place: place{f.stream, filter}, cache: f.cache}
		f.indexes[filter] = t
	}
	return t
}

// advance brings the tailer to its end, as it stands after since. What comes while it
// reads is left for the next time: under load there is always more. Other readers keep
// access to the frame indexes meanwhile.
func (f *tailer) advance(ctx context.Context, x *Index, since time.Time) error {
	if done, err := f.reaches(ctx, since); done || err != nil {
		return err
	}
	select {
	case f.reading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.reading }()
	for {
		done, err := f.advanceOnce(ctx, x, since)
		if done || err != nil {
			return err
		}
	}
}

// reaches says that the tailer was brought to its end after since.
func (f *tailer) reaches(ctx context.Context, since time.Time) (bool, error) {
	if err := f.hold(ctx); err != nil {
		return false, err
	}
	defer f.release()
	return f.begun.After(since), nil
}

// advanceOnce is not done where the tailer was restarted meanwhile.
func (f *tailer) advanceOnce(ctx context.Context, x *Index, since time.Time) (done bool, err error) {
	if err := f.hold(ctx); err != nil {
		return false, err
	}
	began := time.Now()
	switch {
	case f.begun.After(since):
		f.release()
		return true, nil
	case f.next == 0 || began.Sub(f.begun) > idleAfter:
		defer f.release()
		return true, f.beginAtEnd(ctx, x, began)
	}
	ask := nearFrames
	if began.Sub(f.begun) < indexLinger {
		ask = recentFrames
	}
	from, generation := f.next, f.generation
	f.release()
	if err = f.readFrom(ctx, x, from, generation, ask, nearBytes, nil); errors.Is(err, errTailerRestarted) {
		return false, nil
	}
	return true, err
}

// beginAtEnd begins with what comes next. Its caller holds the turn.
func (f *tailer) beginAtEnd(ctx context.Context, x *Index, began time.Time) error {
	last, err := streams.LastSeq(ctx, x.js, f.stream)
	if err != nil {
		return fmt.Errorf("query: %s: %w", f.stream, err)
	}
	f.clear()
	f.next, f.begun, f.ended = last+1, began, time.Now()
	return nil
}

// errTailerRestarted: a tailer was restarted while another goroutine read for it.
var errTailerRestarted = errors.New("the tailer was restarted")

// readFrom reads what the tailer of a generation has from a sequence on, as readOn does,
// and holds the turn only to hand each message over, after check, if given. What
// another goroutine added meanwhile is not added again.
func (f *tailer) readFrom(ctx context.Context, x *Index, from, generation uint64, ask, near int, check func() error) error {
	began := time.Now()
	again := func(do func() error) error {
		if err := f.hold(ctx); err != nil {
			return err
		}
		defer f.release()
		if f.generation != generation {
			return errTailerRestarted
		}
		return do()
	}
	err := readOn(ctx, x, f.place, from, ask, near, func(m *message) error {
		if check != nil {
			if err := check(); err != nil {
				return err
			}
		}
		return again(func() error { return f.take(m) })
	})
	if err != nil {
		return err
	}
	return again(func() error {
		if f.ended = time.Now(); began.After(f.begun) {
			f.begun = began
		}
		return nil
	})
}

// take gives the next message to its frame index. Who reads for the tailer gives it each from
// f.next on, in order; so one below was given before, by another goroutine that read at the same time.
func (f *tailer) take(m *message) error {
	if m.seq < f.next {
		return nil
	}
	f.next, f.ended = m.seq+1, time.Now()
	t := f.indexOf(m)
	if t == nil || !t.inStep || m.seq < t.next {
		return nil
	}
	err := t.add(m)
	if errors.Is(err, errUntracked) {
		t.clear()
		return nil
	}
	return err
}

// indexOf is the frame index of a message; nil for none. A shard's first frame begins
// one.
func (f *tailer) indexOf(m *message) *frameIndex {
	if f.stream == schemas.StreamEvents {
		topic, _, lane, err := schemas.EventsTokens(m.subject)
		if err != nil {
			return nil
		}
		return f.indexes[schemas.LaneFilter(topic, lane)]
	}
	t := f.indexes[m.subject]
	if t == nil && len(f.indexes) < maxIndexes {
		if _, placed, ok := frameMetaOf(f.stream, m.header, m.seq, m.stored, m.bytes); ok && placed.Pos == 1 {
			t = f.frameIndex(m.subject)
			t.begin(1, m.seq)
			t.inStep, t.used = true, time.Now()
		}
	}
	return t
}

// catchUp brings one frame index to the end, and so in step with its tailer.
func (f *tailer) catchUp(ctx context.Context, x *Index, t *frameIndex) error {
	err := readOn(ctx, x, t.place, t.next, nearFrames, nearBytes, t.add)
	if errors.Is(err, errUntracked) {
		t.clear()
	}
	t.inStep = err == nil
	return err
}

// message is one of a stream; whole has its payload, if it came with one.
type message struct {
	subject string
	header  map[string][]string
	seq     uint64
	stored  int64 // unix ns
	bytes   int
	whole   *streams.Message
}

// readOn gives add the messages of a place from a sequence on, to the end as it
// stands at the first request, which is for ask of them. When more than near bytes
// are left of them, these come without their payloads.
func readOn(ctx context.Context, x *Index, at place, next uint64, ask, near int, add func(*message) error) error {
	left, read, bytes := ask, 0, 0
	far := func() bool { return read > 0 && left*(bytes/read) > near }
	err := streams.Gather(ctx, x.js, at.stream, at.filter, next, func() int { return left }, func(msg *streams.Message) (bool, error) {
		if read == 0 {
			left = int(msg.Pending) + 1
		}
		next, left, read, bytes = msg.Sequence+1, left-1, read+1, bytes+len(msg.Data)
		if err := add(&message{msg.Subject, msg.Header, msg.Sequence, msg.Time.UnixNano(), len(msg.Data), msg}); err != nil {
			return false, err
		}
		return left > 0 && !far(), nil
	})
	if err != nil || !far() {
		return err
	}
	_, err = streams.Headers(ctx, x.js, at.stream, at.filter, next, func(msg *streams.Message) error {
		return add(&message{msg.Subject, msg.Header, msg.Sequence, msg.Time.UnixNano(), min(msg.Size, schemas.MaxMessageBytes), nil})
	})
	return err
}
