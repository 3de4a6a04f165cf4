package pool

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

const (
	// lookEvery is how often the watch looks at the connection and the producers.
	lookEvery = 200 * time.Millisecond
	// streamEvery is how often it asks for the stream's size.
	streamEvery = time.Second
	// watchEvery is how often it looks whether topics changed.
	watchEvery = 2 * time.Second
	// oldFor is how old an unanswered frame may be while events are taken: longer than
	// a slow disk's fsync, and shorter than a client's patience.
	oldFor = 2 * time.Second
	// fullMargin is what must be free in EVENTS: what producers and requests may have on
	// their way. A small stream keeps a tenth.
	fullMargin = 32 << 20
)

// Kind is what kind of trouble keeps events from being taken.
type Kind int

// The kinds.
const (
	None Kind = iota
	Away      // NATS does not answer
	Full      // EVENTS has no room
	Slow      // frames are not acknowledged
)

// Stall is why events cannot be taken; the zero Stall is that they can.
type Stall struct {
	Kind Kind
	Says string
}

// state is whether events can be taken, and why not.
type state struct {
	mu      sync.Mutex
	reason  Stall
	changed chan struct{} // closed and renewed when reason changes
}

func (s *state) set(reason Stall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason != s.reason {
		s.reason = reason
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

func (s *state) get() (reason Stall, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason, s.changed
}

// sights is what the watch sees.
type sights struct {
	connected   bool
	oldest      time.Duration // the age of the oldest unanswered frame
	topic       string        // of that frame
	used, limit uint64        // bytes of EVENTS; limit 0: none, or not known
}

// stalled says why events cannot be taken.
func stalled(s sights) Stall {
	switch {
	case !s.connected:
		return Stall{Away, "NATS does not answer"}
	case s.limit > 0 && s.used+min(fullMargin, s.limit/10) > s.limit:
		return Stall{Full, fmt.Sprintf("the stream EVENTS is full (%d of %d bytes) until what it holds is stored in ClickHouse", s.used, s.limit)}
	case s.oldest > oldFor:
		return Stall{Slow, fmt.Sprintf("events of topic %s were sent %s ago and are not acknowledged", s.topic, s.oldest.Round(100*time.Millisecond))}
	}
	return Stall{}
}

// Stalled returns why events cannot be taken now.
func (p *Pool) Stalled() Stall {
	reason, _ := p.state.get()
	return reason
}

// watch keeps the state true until ctx ends.
func (p *Pool) watch(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	stream, topics := time.NewTicker(streamEvery), time.NewTicker(watchEvery)
	defer stream.Stop()
	defer topics.Stop()
	var used, limit uint64
	sizes := make(chan [2]uint64, 1)
	var asking, renewing sync.Mutex
	ask := func() { // beside the loop: NATS may take its time
		if !asking.TryLock() {
			return
		}
		go func() {
			defer asking.Unlock()
			if info, err := streams.Info(ctx, p.js, schemas.StreamEvents); err == nil {
				select {
				case sizes <- [2]uint64{info.State.Bytes, uint64(max(info.Config.MaxBytes, 0))}:
				case <-ctx.Done():
				}
			}
		}()
	}
	ask()
	renew := func() {
		if renewing.TryLock() {
			go func() {
				defer renewing.Unlock()
				p.renew(ctx)
			}()
		}
	}
	changed := make(chan struct{}, 1)
	if p.cfg.Follow != nil {
		go p.cfg.Follow(ctx, changed)
	}
	for {
		p.state.set(stalled(p.look(used, limit)))
		select {
		case <-ctx.Done():
			return
		case s := <-sizes:
			used, limit = s[0], s[1]
		case <-look.C:
		case <-stream.C:
			ask()
		case <-topics.C:
			renew()
		case <-changed:
			renew()
		}
	}
}

// look reads the connection and the producers.
func (p *Pool) look(used, limit uint64) sights {
	s := sights{connected: p.cfg.NC.IsConnected(), used: used, limit: limit}
	for name, slot := range p.current() {
		if age := slot.p.Stats().OldestUnanswered; age > s.oldest {
			s.oldest, s.topic = age, name
		}
	}
	return s
}
