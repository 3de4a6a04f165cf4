package pool

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// Request is the events of one request, from any input. It is not safe for concurrent
// use. End it.
type Request struct {
	p     *Pool
	began time.Time
	key   string
	held  int64
	to    []*Target

	erased []string // set by Store

	token *access.Token // of who asks; nil: none
	bytes int           // of the events

	input   Input
	refused map[refusal]int

	address string // of the client; "": no bound of its own
	peer    *peer
}

// Target is the events of a request that go to one topic.
type Target struct {
	of       *Request
	slot     *slot
	batch    *producer.Batch
	from, to int64 // of its events that have a time, unix ns
	bytes    int   // of its events
	none     noSeries
}

// Begin starts a request.
func (p *Pool) Begin(in Input) *Request { return &Request{p: p, began: time.Now(), input: in} }

// Key makes the request idempotent: sent again with the same key and the same events it
// is stored once. Call it before the first Add. Every event must have a time then.
func (r *Request) Key(key string) {
	r.key = key
	r.refused = nil // the events are added again
	for _, t := range r.to {
		t.batch = t.slot.p.NewBatch(key)
	}
}

// From names the client's address, as PeerOf returns it. What all requests of one address
// hold is bounded too. Call it before Grow.
func (r *Request) From(address string) {
	if address != "" && r.peer == nil {
		r.address, r.peer = address, r.p.peers.borrow(address)
	}
}

// Asked returns why who asks (access.From) may send to no topic at all: before anything is read or held for it.
func (p *Pool) Asked(ctx context.Context) error {
	if p.cfg.Anyone {
		return nil
	}
	who := access.From(ctx)
	return who.Refused(who.MaySome(access.Send))
}

// Ready waits until events can be taken, until the request is Hold old at most. What it
// refuses has taken nothing.
func (r *Request) Ready(ctx context.Context) error { return r.throttled(r.ready(ctx)) }

func (r *Request) ready(ctx context.Context) error {
	if err := r.p.Asked(ctx); err != nil {
		return err
	}
	if err := r.p.cfg.Storing(); err != nil {
		return fmt.Errorf("%w: %w; nothing of this request was taken, send it again", ErrStalled, err)
	}
	left := time.NewTimer(r.p.cfg.Hold - time.Since(r.began))
	defer left.Stop()
	for {
		reason, changed := r.p.state.get()
		if isClosed(r.p.draining) {
			return fmt.Errorf("%w: send the request again; nothing of it was taken", ErrDraining)
		}
		if reason.Kind == None {
			return nil
		}
		select {
		case <-changed:
		case <-r.p.draining:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-left.C:
			return fmt.Errorf("%w: %s; nothing of this request was taken, send it again", ErrStalled, reason.Says)
		}
	}
}

// Grow reserves n more bytes of what all requests may hold, and of what those of its
// address may. It waits SpaceWait at most.
func (r *Request) Grow(ctx context.Context, n int) error { return r.throttled(r.grow(ctx, n)) }

func (r *Request) grow(ctx context.Context, n int) error {
	limit := r.p.cfg.InFlight
	if r.peer != nil {
		limit = r.p.peers.each
	}
	more := min(int64(n), limit-r.held)
	if more <= 0 {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, SpaceWait)
	defer cancel()
	if r.peer != nil {
		if err := r.peer.bytes.Acquire(wait, more); err != nil {
			return r.noSpace(ctx, fmt.Sprintf("requests from %s hold the %d MiB that one address may", r.address, limit>>20))
		}
	}
	if err := r.p.bytes.Acquire(wait, more); err != nil {
		if r.peer != nil {
			r.peer.bytes.Release(more)
		}
		return r.noSpace(ctx, fmt.Sprintf("requests under way hold the %d MiB there are", r.p.cfg.InFlight>>20))
	}
	r.held += more
	r.p.held.Add(more)
	return nil
}

// Busy returns ErrBusy, and counts the request as one of which nothing was taken for now. A why that is the end of the request's own
// context stays what it is.
func (r *Request) Busy(ctx context.Context, why error) error {
	return r.throttled(r.noSpace(ctx, why.Error()))
}

func (r *Request) noSpace(ctx context.Context, why string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %s; send the request again", ErrBusy, why)
}

// Own reports whether a topic is one that Almanac alone writes: the history of alerts, and Config.Own.
func (p *Pool) Own(topic string) bool {
	return topic == schemas.TopicAlerts || slices.Contains(p.cfg.Own, topic)
}

// To returns the target for a topic, the same one each time. Who asks (access.From) must be allowed to send to it: else
// the error is an *access.Denied, whether there is such a topic or not.
func (r *Request) To(ctx context.Context, topic string) (*Target, error) {
	who := access.From(ctx)
	if who != access.Trail && r.p.Own(topic) {
		return nil, who.Refused(&access.Denied{Name: who.Name, Action: access.Send, Topic: topic, Own: true})
	}
	if !r.p.cfg.Anyone {
		if err := who.May(access.Send, topic); err != nil {
			return nil, who.Refused(err)
		}
		r.token = who.Token
	}
	for _, t := range r.to {
		if t.slot.topic.Name == topic {
			return t, nil
		}
	}
	s, err := r.p.borrow(ctx, topic)
	if err != nil {
		return nil, r.throttled(err)
	}
	t := &Target{of: r, slot: s, batch: s.p.NewBatch(r.key), from: math.MaxInt64, to: math.MinInt64}
	r.to = append(r.to, t)
	return t, nil
}

// Topic returns the topic as events are stored by it.
func (t *Target) Topic() *schemas.Topic { return &t.slot.topic }

// Expect makes room for n more events at once. It is a hint.
func (t *Target) Expect(n int) { t.batch.Expect(n) }

// Add checks an event and makes it a part of the request. Its error says which limit
// the event breaks.
func (t *Target) Add(ev schemas.Event) error { return t.AddOf(ev, nil) }

// AddOf is Add of an event that was read from source, which names it in a keyed request.
func (t *Target) AddOf(ev schemas.Event, source []byte) error {
	err := t.batch.AddOf(ev, source)
	if err == nil {
		t.count(ev.Time.UnixNano(), ev.Bytes())
	}
	if errors.Is(err, producer.ErrKey) {
		err = fmt.Errorf("%w: a request with a key needs a time in every event; now would be another time when it is sent again", ErrKeyTime)
	}
	if err != nil {
		t.Refuse(err)
	}
	return err
}

// count notes an event that the request has.
func (t *Target) count(at int64, n int) {
	t.from, t.to = min(t.from, at), max(t.to, at)
	t.bytes += n
	t.of.bytes += n
}

// ErrKeyTime: an event of a keyed request has no time.
var ErrKeyTime = errors.New("no time")

// Len returns how many events the request has.
func (r *Request) Len() (n int) {
	for _, t := range r.to {
		n += t.batch.Len()
	}
	return n
}

// Topics returns the names of the topics that get events.
func (r *Request) Topics() (names []string) {
	for _, t := range r.to {
		if t.batch.Len() > 0 {
			names = append(names, t.slot.topic.Name)
		}
	}
	return names
}

// Submit takes all events and returns without waiting until they are stored. A client
// that goes away does not end it half-way.
func (r *Request) Submit(ctx context.Context) error {
	err := r.submit(ctx)
	if err != nil {
		r.tell(outcomeOf(err))
		return err
	}
	r.tell(Taken)
	return nil
}

func (r *Request) submit(ctx context.Context) error {
	if err := r.Ready(ctx); err != nil {
		return err
	}
	if err := r.throttled(r.withinRate()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), AckWait)
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	// While nothing is taken the request can still be refused, and a client waits Hold for
	// that at most: the producer's buffer may be full before the stream is seen to be.
	looked := make(chan struct{})
	held := time.AfterFunc(r.p.cfg.Hold, func() { // counted from here: a body that comes slowly does not wait for room
		defer close(looked)
		if r.taken() == 0 {
			giveUp(fmt.Errorf("the buffer of events that wait for the stream had no room for %s", r.p.cfg.Hold))
		}
	})
	defer func() {
		if !held.Stop() {
			<-looked // the request may end now
		}
	}()
	defer WhileStoring(ctx, r.p.cfg.Storing, giveUp)()
	for _, t := range r.to {
		if err := t.batch.Submit(ctx); err != nil {
			if r.taken() == 0 {
				return fmt.Errorf("%w: %w; nothing of this request was taken, send it again", ErrStalled, err)
			}
			return fmt.Errorf("%w: %d of %d events were taken and may be stored: %w", ErrOutcomeUnknown, r.taken(), r.Len(), err)
		}
	}
	return nil
}

// taken is how many events the producers have.
func (r *Request) taken() (n int) {
	for _, t := range r.to {
		n += t.batch.Taken()
	}
	return n
}

// Store takes all events and returns when they are stored. repeated says that the
// stream had all of them already, under the request's key.
func (r *Request) Store(ctx context.Context) (repeated bool, err error) {
	repeated, err = r.store(ctx)
	if err != nil {
		r.tell(outcomeOf(err))
		return repeated, err
	}
	r.tell(Stored)
	if h := r.p.cfg.Hooks.Repeated; h != nil && repeated {
		h(r.input)
	}
	return repeated, nil
}

func (r *Request) store(ctx context.Context) (repeated bool, err error) {
	if err := r.submit(ctx); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), AckWait)
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	defer WhileStoring(ctx, r.p.cfg.Storing, giveUp)()
	repeated = r.key != "" && r.Len() > 0
	for _, t := range r.to {
		if err := t.batch.Wait(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return false, fmt.Errorf("%w: the events were taken and are not acknowledged: %w", ErrOutcomeUnknown, err)
		}
		repeated = repeated && (t.batch.Len() == 0 || t.batch.Repeated())
	}
	return repeated, r.lookForErasures(ctx)
}

// lookForErasures finds the erasures that took events of a request which the stream had
// before. They were acknowledged once more and are not stored again, which the answer
// must say.
func (r *Request) lookForErasures(ctx context.Context) error {
	for _, t := range r.to {
		seq := t.batch.RepeatedFrom()
		if seq == 0 || r.p.cfg.Erased == nil {
			continue
		}
		ids, err := r.p.cfg.Erased(ctx, t.slot.topic.Name, seq, t.from, t.to)
		if err != nil {
			return fmt.Errorf("%w: the request was stored before, and whether some of it was erased since cannot be told: %w", ErrOutcomeUnknown, err)
		}
		r.erased = append(r.erased, ids...)
	}
	return nil
}

// Erased returns, after Store, the erasures that were entered since a request under its
// key was stored first, and that may mean events of it. Those stay erased: the request is
// the same one. To store them again it needs another key.
func (r *Request) Erased() []string { return r.erased }

// End gives back what the request holds.
func (r *Request) End() {
	r.tellRefused()
	for _, t := range r.to {
		r.p.giveBack(t.slot)
	}
	r.to = nil
	r.p.bytes.Release(r.held)
	r.p.held.Add(-r.held)
	if r.peer != nil {
		r.p.peers.giveBack(r.address, r.peer, r.held)
	}
	r.held, r.peer = 0, nil
}
