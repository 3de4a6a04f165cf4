package timers

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"math"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// holdings count what groups hold of the front: those with a bound of their own, and all while the front is
// more than half full. A count follows the front, and is read on when it is older than countAge: callers elsewhere
// are seen within that time, so together they may pass the bound by what they create in it.
type holdings struct {
	mu     sync.Mutex
	groups map[string]*holding
}

// holding are the timers of a group that are in the front, by a hash of their subjects: 16 bytes each and the map's.
type holding struct {
	mu    sync.Mutex
	upTo  uint64    // sequence in the front
	at    time.Time // when it was last brought up to date
	gone  time.Time // when it was looked who is still there
	there map[uint64]counted
	live  int   // those that are not over
	bytes int64 // of all
}

// counted is what a timer has in the front.
type counted struct {
	bytes uint32
	over  bool
}

// countAge is how old a count may be: within it, a caller that creates without a pause does not read the front again.
// It is short, because a bound may be passed by what callers elsewhere create in it.
const countAge = time.Second

// subjectSeed is of the hashes of subjects in this process.
var subjectSeed = maphash.MakeSeed()

// specBytes is what a new timer's record has beside its spec: subject and headers, with room for long names. It is
// counted so until the record is read.
const specBytes = 600

// space refuses a new timer of a group that holds what it may. Otherwise the timer counts from then on, until undo.
func (t *Timers) space(ctx context.Context, g *timer.Group, key schemas.TimerKey, spec *timer.Spec) (undo func(), err error) {
	use, err := t.w.Use(ctx)
	if err != nil {
		return nil, err
	}
	text, _ := json.Marshal(spec)
	need := int64(len(text) + specBytes)
	if g.MaxPending <= 0 && g.MaxBytes <= 0 && int64(use.Bytes)+use.Owed()+need <= use.Free(fronts.Grow) {
		return func() {}, nil // a group that holds all of it does not hold more than is free
	}
	h := t.holdings.of(g.Name)
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.at) > countAge {
		if err := t.readHolding(ctx, g, h); err != nil {
			return nil, err
		}
	}
	one := maphash.String(subjectSeed, key.Subject())
	err = h.takes(g, &use, one, need)
	if err != nil && time.Since(h.gone) > countAge {
		// Timers may have left the front unread: before it refuses, it looks who is there.
		if err := t.dropGone(ctx, g, h); err != nil {
			return nil, err
		}
		err = h.takes(g, &use, one, need)
	}
	if err != nil {
		return nil, err
	}
	was, there := h.there[one]
	if there && !was.over {
		return func() {}, nil
	}
	h.set(one, counted{bytes: narrow(need)})
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.drop(one); there {
			h.set(one, was)
		}
	}, nil
}

// takes refuses another timer of a group by what the group holds.
func (h *holding) takes(g *timer.Group, use *fronts.Use, one uint64, need int64) error {
	was, there := h.there[one]
	if there && !was.over { // it is the same timer, or refused for that
		return nil
	}
	if g.MaxPending > 0 && h.live >= g.MaxPending {
		return timer.GroupFull(g, h.live)
	}
	has, may := h.bytes+int64(len(h.there))*fronts.TimerEnds, use.Free(fronts.Grow)
	if g.MaxBytes > 0 {
		may = g.MaxBytes
	}
	if has+need > may {
		return timer.GroupHolds(g, h.live, has, may)
	}
	return nil
}

func narrow(n int64) uint32 { return uint32(min(n, math.MaxUint32)) }

func (h *holding) set(one uint64, v counted) {
	h.drop(one)
	h.there[one], h.bytes = v, h.bytes+int64(v.bytes)
	if !v.over {
		h.live++
	}
}

func (h *holding) drop(one uint64) {
	v, ok := h.there[one]
	if !ok {
		return
	}
	delete(h.there, one)
	h.bytes -= int64(v.bytes)
	if !v.over {
		h.live--
	}
}

// of returns the count of a group.
func (hs *holdings) of(group string) *holding {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.groups[group]
	if h == nil {
		if hs.groups == nil || len(hs.groups) >= maxGroups {
			hs.groups = map[string]*holding{}
		}
		h = &holding{there: map[uint64]counted{}}
		hs.groups[group] = h
	}
	return h
}

// dropGone takes those out of the count that are not in the front any more.
func (t *Timers) dropGone(ctx context.Context, g *timer.Group, h *holding) error {
	began := time.Now()
	subjects, err := streams.Subjects(ctx, t.js, schemas.StreamTimers, schemas.TimerGroupFilter(t.topic.InFronts(), g.Name))
	if err != nil {
		return err
	}
	there := make(map[uint64]struct{}, len(subjects))
	for s := range subjects {
		there[maphash.String(subjectSeed, s)] = struct{}{}
	}
	for one := range h.there {
		if _, ok := there[one]; !ok {
			h.drop(one)
		}
	}
	h.gone = began
	return nil
}

// readHolding reads on what happened to the group's timers.
func (t *Timers) readHolding(ctx context.Context, g *timer.Group, h *holding) error {
	began := time.Now()
	_, err := streams.Headers(ctx, t.js, schemas.StreamTimers, schemas.TimerGroupFilter(t.topic.InFronts(), g.Name), h.upTo+1, func(m *streams.Message) error {
		h.upTo = max(h.upTo, m.Sequence)
		r, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil)
		if err != nil {
			return nil // a stray is the router's
		}
		one, size := maphash.String(subjectSeed, m.Subject), fronts.StoredBytes(m.Subject, m.Header, m.Size)
		if r.Op != timer.Created { // which begins a life; the record that space counted before is this one
			size += int64(h.there[one].bytes)
		}
		h.set(one, counted{narrow(size), r.State().Over()})
		return nil
	})
	if err == nil {
		h.at = began
	}
	return err
}
