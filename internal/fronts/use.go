package fronts

import (
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

// Purpose is what a write is for. It says how full the write may make the front.
type Purpose int

const (
	// Grow adds a key, or what was not there. It leaves the reserve alone.
	Grow Purpose = iota
	// Change goes on with a key, as an update or a further attempt does. It leaves half of the reserve.
	Change
	// End is what the front is for and what empties it: claims, outcomes, removals, stubs. It takes what there is.
	End
)

// Use is how full a front is, as its leader said.
type Use struct {
	Stream      string
	Keys, Bytes uint64
	// Limit of the bytes; below 1 there is none.
	Limit int64
}

const (
	// reserveShare of a front is kept from new keys: an eighth, at least minReserve, at most a half.
	reserveShare = 8
	minReserve   = 16 << 20
	// TimerEnds is what a timer may still write: a claim and an outcome of some 550 bytes each, with an id of usual
	// length. New timers leave that much for each one that is there.
	TimerEnds = 1280
	// windowShare of what is free, at least minWindow, is what a writer may have on its way: as much may be stored
	// that another writer did not see. So 32 writers at once stay within half of the reserve.
	windowShare = 256
	minWindow   = 64 << 10
	// aloneShare of what is free is the most that one write may be that is larger than the window and than maxAlone.
	aloneShare = 8
	maxAlone   = 320 << 10
)

// Reserve returns how many bytes of a front's limit are kept from new keys.
func Reserve(limit int64) int64 { return min(limit/2, max(limit/reserveShare, minReserve)) }

// Owed returns what the keys that are there may still write.
func (u *Use) Owed() int64 {
	if u.Stream == schemas.StreamTimers {
		return int64(u.Keys) * TimerEnds
	}
	return 0
}

// Free returns how many bytes writes of a purpose may still add; it may be below 0. Half of the reserve is
// kept from changes too, so that ends, which free room, always have some.
func (u *Use) Free(p Purpose) int64 {
	if u.Limit <= 0 {
		return 1 << 62
	}
	free := u.Limit - int64(u.Bytes)
	switch p {
	case Grow:
		return free - u.Owed() - Reserve(u.Limit)
	case Change:
		return free - u.Owed() - Reserve(u.Limit)/2
	}
	return free
}

// window is how many bytes a writer may have on its way where so many are free, and alone the most that one write may
// be that goes while no other is on its way.
func window(free int64) (several, alone int64) {
	several = max(free/windowShare, minWindow)
	return min(several, free), max(free/aloneShare, min(free, max(several, maxAlone)))
}

// FullError is ErrFull with how full the front is.
type FullError struct {
	Use
	Purpose Purpose
	// Need is the size of what was to be written.
	Need int64
}

// Error says what holds the write up, and what helps.
func (e *FullError) Error() string {
	what := map[Purpose]string{Grow: "what is new", Change: "changes", End: "ends"}[e.Purpose]
	return fmt.Sprintf("%s holds %s of %s and has no room for %s: the rest is for what is due, removals and ends; `almanac streams` shows who holds it, `almanac streams apply %s --bytes SIZE` makes it larger",
		e.Stream, schemas.FormatBytes(float64(e.Bytes)), schemas.FormatBytes(float64(e.Limit)), what, e.Stream)
}

// Is makes it an ErrFull.
func (e *FullError) Is(target error) bool { return target == ErrFull }
