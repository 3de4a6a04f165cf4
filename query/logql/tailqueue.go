package logql

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Bounds of a tail.
const (
	// maxTailBytes of lines wait for a reader: some 4,000 lines, as Entry.bytes counts them.
	maxTailBytes = 4 << 20
	// batchLines are given to a reader at once, more where more are of one time.
	batchLines = 1000
	// maxQueueWait is how long a full queue waits for its reader. Then lines are left out until it reads again.
	maxQueueWait = 5 * time.Second
	// MaxDropped is how many lines that were left out are named, as Loki does.
	MaxDropped = 1000
	// MaxDelay of a tail, as Loki has it.
	MaxDelay = 5 * time.Second
)

// waiting is a line in a queue. It stands there by its own time, or by when it came, where its own is ahead of that.
type waiting struct {
	*Entry
	at    int64
	bytes int
}

// tailQueue is what waits between topics that are followed and a reader, in the order of times.
type tailQueue struct {
	delay time.Duration
	wake  chan struct{} // something came

	mu      sync.Mutex
	held    []waiting
	bytes   int
	dropped []Dropped
	slow    bool          // the reader had maxQueueWait, and did not read
	space   chan struct{} // closed when the reader has taken something
}

func newTailQueue(delay time.Duration) *tailQueue {
	return &tailQueue{delay: delay, wake: make(chan struct{}, 1), space: make(chan struct{})}
}

// put adds a line, once there is space. It leaves it out where the reader takes none for as long as maxQueueWait.
func (q *tailQueue) put(ctx context.Context, e *Entry) error {
	for {
		space := q.add(e, false)
		if space == nil {
			return nil
		}
		timer := time.NewTimer(maxQueueWait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-space:
			timer.Stop()
		case <-timer.C:
			q.add(e, true)
			return nil
		}
	}
}

// add adds a line where there is space. Else it returns what is closed when there may be, or leaves the line out: at once where the reader
// is known to be slow, and where late says so.
func (q *tailQueue) add(e *Entry, late bool) (space <-chan struct{}) {
	size := e.bytes()
	q.mu.Lock()
	defer q.mu.Unlock()
	defer func() {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}()
	switch {
	case !q.full(size):
		one := waiting{e, min(e.Ts, time.Now().UnixNano()), size}
		q.held = slices.Insert(q.held, q.upTo(one.at), one)
		q.bytes += size
	case q.slow || late:
		q.slow = true
		if len(q.dropped) < MaxDropped {
			q.dropped = append(q.dropped, Dropped{Labels: e.Labels(), Ts: e.Ts})
		}
	default:
		return q.space
	}
	return nil
}

// upTo returns how many lines stand at a time or before.
func (q *tailQueue) upTo(at int64) int {
	n, _ := slices.BinarySearchFunc(q.held, at, func(one waiting, at int64) int { return cmp.Or(cmp.Compare(one.at, at), -1) })
	return n
}

// full reports whether there is no space for so many bytes more.
func (q *tailQueue) full(bytes int) bool {
	return len(q.held) > 0 && q.bytes+bytes > maxTailBytes
}

// take waits for lines that are due.
func (q *tailQueue) take(ctx context.Context) (TailBatch, error) {
	for {
		batch, wait := q.due(time.Now())
		if len(batch.Entries)+len(batch.Dropped) > 0 {
			return batch, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return batch, ctx.Err()
		case <-q.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// nothingDue is how long a reader sleeps that nothing waits for.
const nothingDue = time.Hour

// due takes what is due at a time, and returns how long the next line is held.
func (q *tailQueue) due(now time.Time) (batch TailBatch, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.held)
	if q.delay > 0 && !q.full(maxTailBytes/8) { // a queue that fills up holds nothing back
		last := now.Add(-q.delay).UnixNano()
		if n = q.upTo(last); n == 0 && len(q.held) > 0 {
			wait = time.Duration(q.held[0].at - last)
		}
	}
	if n > batchLines {
		n = batchLines
		for n < len(q.held) && q.held[n].Ts == q.held[n-1].Ts {
			n++
		}
	}
	batch.Dropped = q.dropped
	for _, one := range q.held[:n] {
		batch.Entries = append(batch.Entries, one.Entry)
		q.bytes -= one.bytes
	}
	q.held, q.dropped = slices.Delete(q.held, 0, n), nil
	if n > 0 {
		q.slow = false
		close(q.space)
		q.space = make(chan struct{})
	}
	if wait <= 0 || wait > nothingDue {
		wait = nothingDue
	}
	return batch, wait
}
