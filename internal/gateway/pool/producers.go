package pool

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// slot is the producer of a topic. A topic has at most one that new requests get; one
// that was replaced stays until its last request has ended.
type slot struct {
	topic schemas.Topic
	p     *producer.Producer
	users int
	last  time.Time     // when it was last asked for
	made  chan struct{} // closed when p or err is there
	err   error
	stale bool // replaced: closed with its last user

	forgotten bool // its series are not remembered any more; of the table's lock
}

// unknownTopic is a name that was not declared a moment ago.
type unknownTopic struct {
	err error
	at  time.Time
}

const (
	// unknownFor is how long a name that is not declared is not looked up again.
	unknownFor = time.Second
	// maxUnknown bounds the names remembered; past it all are forgotten.
	maxUnknown = 1000
	// makeWait bounds the look-up of a topic.
	makeWait = 5 * time.Second
)

// borrow returns a topic's producer. The caller gives it back.
func (p *Pool) borrow(ctx context.Context, name string) (*slot, error) {
	if err := schemas.ValidateTopicName(name); err != nil {
		return nil, err
	}
	p.mu.Lock()
	if u, ok := p.unknown[name]; ok && time.Since(u.at) < unknownFor {
		p.mu.Unlock()
		return nil, u.err
	}
	s := p.slots[name]
	if s == nil {
		if len(p.slots) >= MaxProducers && !p.evict() {
			p.mu.Unlock()
			return nil, fmt.Errorf("%w: requests of %d topics are under way, which is all that one gateway serves at once; send again, or run another gateway", ErrTopics, MaxProducers)
		}
		s = &slot{made: make(chan struct{})}
		p.slots[name] = s
		go p.make(name, s) //nolint:gosec // the producer outlives the request that wants it first
	}
	s.users++
	s.last = time.Now()
	p.mu.Unlock()
	select {
	case <-s.made:
	case <-ctx.Done():
		p.giveBack(s)
		return nil, context.Cause(ctx)
	}
	if s.err != nil {
		p.giveBack(s)
		return nil, s.err
	}
	return s, nil
}

// make starts a topic's producer, for everybody who waits for it.
func (p *Pool) make(name string, s *slot) {
	ctx, cancel := context.WithTimeout(context.Background(), makeWait)
	defer cancel()
	topic, err := p.cfg.Topic(ctx, name)
	var made *producer.Producer
	if err == nil {
		made, err = producer.New(ctx, p.cfg.NC, p.config(name))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if p.slots[name] == s {
			delete(p.slots, name)
		}
		if errors.Is(err, schemas.ErrUnknownTopic) {
			if len(p.unknown) >= maxUnknown {
				clear(p.unknown)
			}
			p.unknown[name] = unknownTopic{err, time.Now()}
		} else if topic.NeedsPrivacyKey() && errors.Is(err, schemas.ErrPrivacyKey) {
			err = fmt.Errorf("%w: topic %s hashes fields, and this gateway has no key for that: set pii_key (ALMANAC_PII_KEY, or ALMANAC_PII_KEY_FILE) of `almanac gateway` or `almanac up` to what the topic's other producers have, and start it again", ErrNoKey, name)
		} else {
			err = fmt.Errorf("%w: topic %s: %w", ErrStalled, name, err)
		}
	}
	s.topic, s.p, s.err = topic, made, err
	close(s.made)
	if s.stale && s.users == 0 {
		go p.retire(s)
	}
}

// giveBack ends one use.
func (p *Pool) giveBack(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users--; s.users == 0 && s.stale {
		go p.retire(s)
	}
}

// evict makes room for another topic: the one that was not used for longest goes.
// Caller holds mu.
func (p *Pool) evict() bool {
	var oldest string
	for name, s := range p.slots {
		if s.users == 0 && (oldest == "" || s.last.Before(p.slots[oldest].last)) {
			oldest = name
		}
	}
	if oldest == "" {
		return false
	}
	p.replace(oldest)
	return true
}

// replace takes a topic's producer out of use. Caller holds mu.
func (p *Pool) replace(name string) {
	s := p.slots[name]
	delete(p.slots, name)
	p.series.forget(s)
	s.stale = true
	p.leaving[s] = true
	if s.users == 0 && isClosed(s.made) {
		go p.retire(s)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// retire closes a producer that no request uses.
func (p *Pool) retire(s *slot) {
	defer p.remember(s)
	if s.p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), AckWait)
	defer cancel()
	if err := s.p.Close(ctx); err != nil {
		p.cfg.OnError(s.topic.Name, err)
	}
}

// renew replaces the producers whose topic changed.
func (p *Pool) renew(ctx context.Context) {
	for name, s := range p.current() {
		topic, err := p.cfg.Topic(ctx, name)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !errors.Is(err, schemas.ErrUnknownTopic) {
			return // the registry is away: what is known goes on
		}
		if err == nil && reflect.DeepEqual(topic, s.topic) {
			continue
		}
		p.mu.Lock()
		if p.slots[name] == s {
			p.replace(name)
		}
		p.mu.Unlock()
	}
}

// current returns the producers in use that are made.
func (p *Pool) current() map[string]*slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]*slot, len(p.slots))
	for name, s := range p.slots {
		if isClosed(s.made) && s.err == nil {
			out[name] = s
		}
	}
	return out
}

// close flushes and closes every producer.
func (p *Pool) close(ctx context.Context) error {
	current := p.current()
	ended := make(chan error, len(current))
	for _, s := range current {
		go func() { ended <- s.p.Close(ctx) }()
	}
	var errs []error
	for range current {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}
