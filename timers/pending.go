package timers

import (
	"context"
	"hash/maphash"
	"maps"
	"sync"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/streams"
)

// pendings count the timers that are not over of groups with a bound. A count follows the front, and is
// read on when it is older than pendingAge: callers elsewhere are seen within that time, so together they
// may pass the bound by what they create in it.
type pendings struct {
	mu     sync.Mutex
	groups map[string]*pending
}

// pending are the timers of a group that are not over, by a hash of their subjects: 8 bytes each and the map's.
type pending struct {
	mu   sync.Mutex
	upTo uint64 // sequence in the front
	at   time.Time
	full time.Time // when it was looked who is still there
	live map[uint64]struct{}
}

const pendingAge = time.Second

var pendingSeed = maphash.MakeSeed()

// room refuses a new timer of a group that is full. Otherwise the timer counts from then on, until undo.
func (t *Timers) room(ctx context.Context, g *timer.Group, key schemas.TimerKey) (undo func(), err error) {
	if g.MaxPending <= 0 {
		return func() {}, nil
	}
	p := t.pendings.of(g.Name)
	p.mu.Lock()
	defer p.mu.Unlock()
	one := maphash.String(pendingSeed, key.Subject())
	if time.Since(p.at) > pendingAge {
		if err := t.readPending(ctx, g, p); err != nil {
			return nil, err
		}
	}
	_, there := p.live[one]
	if !there && len(p.live) >= g.MaxPending && time.Since(p.full) > pendingAge {
		// Records that ended timers may have left the front unread: before it refuses, it looks who is there.
		if err := t.dropGone(ctx, g, p); err != nil {
			return nil, err
		}
		_, there = p.live[one]
	}
	switch {
	case there:
		return func() {}, nil
	case len(p.live) >= g.MaxPending:
		return nil, timer.GroupFull(g, len(p.live))
	}
	p.live[one] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.live, one)
	}, nil
}

// of returns the count of a group.
func (ps *pendings) of(group string) *pending {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.groups[group]
	if p == nil {
		if ps.groups == nil || len(ps.groups) >= maxGroups {
			ps.groups = map[string]*pending{}
		}
		p = &pending{live: map[uint64]struct{}{}}
		ps.groups[group] = p
	}
	return p
}

// dropGone takes those out of the count that are not in the front any more.
func (t *Timers) dropGone(ctx context.Context, g *timer.Group, p *pending) error {
	began := time.Now()
	subjects, err := streams.Subjects(ctx, t.js, schemas.StreamTimers, schemas.TimerGroupFilter(t.topic.Name, g.Name))
	if err != nil {
		return err
	}
	there := make(map[uint64]struct{}, len(subjects))
	for s := range subjects {
		there[maphash.String(pendingSeed, s)] = struct{}{}
	}
	maps.DeleteFunc(p.live, func(one uint64, _ struct{}) bool {
		_, ok := there[one]
		return !ok
	})
	p.full = began
	return nil
}

// readPending reads on what happened to the group's timers.
func (t *Timers) readPending(ctx context.Context, g *timer.Group, p *pending) error {
	began := time.Now()
	_, err := streams.Headers(ctx, t.js, schemas.StreamTimers, schemas.TimerGroupFilter(t.topic.Name, g.Name), p.upTo+1, func(m *streams.Message) error {
		p.upTo = max(p.upTo, m.Sequence)
		r, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil)
		if err != nil {
			return nil // a stray is the router's
		}
		if one := maphash.String(pendingSeed, m.Subject); r.State().Over() {
			delete(p.live, one)
		} else {
			p.live[one] = struct{}{}
		}
		return nil
	})
	if err == nil {
		p.at = began
	}
	return err
}
