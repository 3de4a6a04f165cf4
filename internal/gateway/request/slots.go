package request

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/pool"
)

// OnLimit hears of each request, call or connection that a limit refuses: of what, and why, both as words for counts.
type OnLimit func(what, why string)

// Why a limit refuses.
const (
	LimitFull  = "full"  // all that there may be are under way
	LimitShare = "share" // what is left is kept for others than who asks
	// LimitNotAllowed: nothing is taken from that address.
	LimitNotAllowed = "not_allowed"
)

// Slots bound how many requests of a sort are under way at once, so that no client takes all of them (shares). They are safe for
// concurrent use.
type Slots struct {
	what    string
	onLimit OnLimit

	mu     sync.Mutex
	shares *shares
	queued *shares       // of the places to wait in (Queue)
	freed  chan struct{} // closed and renewed when a slot is given back
}

const (
	// QueueWait is how long a read waits for a slot: a page of Grafana asks for all of its panels at once, and gives up after half a
	// minute.
	QueueWait = 10 * time.Second
	// maxQueued wait at once. Each holds its form, of 1 MiB at most.
	maxQueued = 32
)

// NewSlots returns n slots for what is named in the plural. onLimit may be nil.
func NewSlots(what string, n int, onLimit OnLimit) *Slots {
	if onLimit == nil {
		onLimit = func(string, string) {}
	}
	return &Slots{what: what, onLimit: onLimit, shares: sharesOf(n), queued: sharesOf(maxQueued), freed: make(chan struct{})}
}

// WithOthers returns how many slots there must be for one client to have each of them while no other asks: a third more.
func WithOthers(each int) int { return each + (each+2)/3 }

// HolderOf returns whose share a request takes from: that of its token, or of the clients without one at its address (pool.PeerOf). This
// machine's own programs without a token are one holder.
func HolderOf(r *http.Request) string {
	if name := access.From(r.Context()).Name; name != "" {
		return name
	}
	return "\x00" + pool.PeerOf(r.RemoteAddr) // no token has such a name
}

// BusyError says that a holder gets no slot now.
type BusyError struct {
	What        string
	Taken, Held int // by all, and by the holder
}

func (e *BusyError) Error() string {
	if e.Held == e.Taken {
		return fmt.Sprintf("%d %s are under way", e.Taken, e.What)
	}
	return fmt.Sprintf("%d %s are under way, %d of them by this client", e.Taken, e.What, e.Held)
}

// Take gives a holder a slot, or returns a *BusyError at once. Call free when the request ends.
func (s *Slots) Take(holder string) (free func(), err error) {
	return s.TakeSome(holder, 1)
}

// TakeSome is Take of n slots, of all or none.
func (s *Slots) TakeSome(holder string, n int) (free func(), err error) {
	free, _, busy := s.try(holder, n)
	if busy != nil {
		return nil, s.refused(busy)
	}
	return free, nil
}

// Wait is Take that waits for a slot, for so long at most and until ctx ends.
func (s *Slots) Wait(ctx context.Context, holder string, most time.Duration) (free func(), err error) {
	end := time.NewTimer(most)
	defer end.Stop()
	for {
		free, freed, busy := s.try(holder, 1)
		if busy == nil {
			return free, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-end.C:
			return nil, s.refused(busy)
		}
	}
}

// Queue is Wait for QueueWait, of a few at once, of which one client leaves some: one more is refused at once.
func (s *Slots) Queue(ctx context.Context, holder string) (free func(), err error) {
	free, _, busy := s.try(holder, 1)
	if busy == nil {
		return free, nil
	}
	if !s.queue(holder) {
		return nil, s.refused(busy)
	}
	defer s.unqueue(holder)
	return s.Wait(ctx, holder, QueueWait)
}

func (s *Slots) queue(holder string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued.take(holder, 1)
}

func (s *Slots) unqueue(holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued.giveBack(holder, 1)
}

// try gives slots, or what says when to try again.
func (s *Slots) try(holder string, n int) (free func(), freed <-chan struct{}, busy *BusyError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shares.take(holder, n) {
		return nil, s.freed, &BusyError{s.what, s.shares.taken, s.shares.by[holder]}
	}
	return sync.OnceFunc(func() { s.giveBack(holder, n) }), nil, nil
}

func (s *Slots) giveBack(holder string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares.giveBack(holder, n)
	close(s.freed)
	s.freed = make(chan struct{})
}

func (s *Slots) refused(busy *BusyError) error {
	why := LimitShare
	if busy.Taken == s.shares.slots {
		why = LimitFull
	}
	s.onLimit(s.what, why)
	return busy
}
