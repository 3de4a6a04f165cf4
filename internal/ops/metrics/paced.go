package metrics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/fanout"
)

const (
	// pause is how many times as long as a read took its source is left alone: reads of a large front take a
	// twentieth of a core, however often they are asked for.
	pause = 20
	// readWait is how long a read may take. One of 500,000 timers took 7 s.
	readWait = time.Minute
	// maxWait is how long a caller waits for a read while there is an older result: most reads end before.
	maxWait = time.Second
	// maxAge is how old a result may be that is returned: what is older does not say how things are.
	maxAge = 5 * time.Minute
	// maxPause bounds the pause after a read, so that a result is not older than maxAge when the next one ends.
	maxPause = maxAge - readWait
)

// oldError says that what is returned beside it was read before: why it could not be read now, and when that was.
type oldError struct {
	error
	at time.Time
}

func (e *oldError) Unwrap() error { return e.error }

// age is how old what was returned is; 0 where it was read in time.
func (e *oldError) age(now time.Time) time.Duration {
	if e == nil {
		return 0
	}
	return max(now.Sub(e.at), 0)
}

// errUnderWay is that of an oldError where nothing failed: a read goes on for longer than its caller waits.
var errUnderWay = errors.New("a read is under way")

var errOld = fmt.Errorf("what was read last is older than %s, and a read is under way", maxAge)

// paced is a source that is read now and then.
type paced struct {
	read   func(ctx context.Context) ([]Sample, error)
	apart  time.Duration
	pauses time.Duration // how many times as long as a read took the next one waits

	mu      sync.Mutex
	reading chan struct{} // closed when the read under way ends; nil: none is
	done    bool          // a read has ended, with last and err
	last    []Sample      // of the last read that was good
	at      time.Time     // last is as of then, at the earliest; zero: there is none
	err     error
	until   time.Time // no other read begins before
}

// Paced returns a source whose reads begin at least so far apart, and one at a time. In between, and where a read
// takes more than a moment, it returns what it read last, and in the latter case how old that is, unless that is older than maxAge. After a failed read it returns that, too, but for what
// is true only now, beside the failure, and the next read may begin so far after its end. A read goes on when its caller gives up, so that the next one finds its result.
func Paced(name string, read func(ctx context.Context) ([]Sample, error), apart time.Duration) Source {
	p := &paced{read: read, apart: apart, pauses: pause}
	return Source{name, p.get}
}

// Probed is Paced for a question that costs little, however long its answer is waited for: the next one is asked so far after the
// beginning of the one before, so that what it returns is of now.
func Probed(name string, read func(ctx context.Context) ([]Sample, error), apart time.Duration) Source {
	p := &paced{read: read, apart: apart}
	return Source{name, p.get}
}

func (p *paced) get(ctx context.Context) ([]Sample, error) {
	p.mu.Lock()
	if p.reading == nil && time.Now().Before(p.until) {
		defer p.mu.Unlock()
		return p.known()
	}
	if p.reading == nil {
		p.reading = make(chan struct{})
		go p.again(context.WithoutCancel(ctx))
	}
	reading := p.reading
	var enough <-chan time.Time
	if _, err := p.known(); p.done && !errors.Is(err, errOld) {
		enough = time.After(maxWait)
	}
	p.mu.Unlock()
	late := false
	select {
	case <-reading:
	case <-enough:
		late = true
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	last, err := p.known()
	if late && p.reading == reading && err == nil {
		err = &oldError{errUnderWay, p.at}
	}
	return last, err
}

// known is the last result. Caller holds mu.
func (p *paced) known() ([]Sample, error) {
	switch old := p.at.IsZero() || time.Since(p.at) > maxAge; {
	case p.err == nil && old:
		return nil, errOld
	case p.err == nil:
		return p.last, nil
	case old:
		return nil, p.err
	}
	return slices.DeleteFunc(slices.Clone(p.last), func(s Sample) bool { return s.Of.Now }), &oldError{p.err, p.at}
}

func (p *paced) again(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	began := time.Now()
	var last []Sample
	err := fanout.Call(func() (err error) { // a scrape that fails must not end the process, nor hold up the next
		last, err = p.read(ctx)
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done, p.err = true, err; err == nil {
		p.last, p.at = last, began
	}
	if p.until = began.Add(max(p.apart, min(p.pauses*time.Since(began), maxPause))); err != nil {
		p.until = time.Now().Add(p.apart)
	}
	close(p.reading)
	p.reading = nil
}
