package producer

import "time"

const (
	// busyEvents is how many events each linger must have brought a frame that is to
	// wait for one more: company, so that waiting makes fewer frames. A frame costs all
	// parts together about a millisecond of CPU whatever is in it (its fsync, its place in
	// the router's batch, and in ClickHouse a block of 25 columns), as much as hundreds
	// of events.
	busyEvents = 2
	// busyLinger is how long a frame of a busy lane waits at most, and busyLingers how
	// many lingers that may be: so a shorter linger that was asked for stays short.
	busyLinger  = 60 * time.Millisecond
	busyLingers = 3
	// busyBuffer is the part of the buffer, one in so many, above which no frame waits
	// longer than a linger.
	busyBuffer = 4
)

// lingersOn says whether a frame waits for one more linger that has so many events
// after so many lingers: while they come fast it will be that much larger, and
// JetStream, router, sinks and ClickHouse pay by the frame.
func lingersOn(linger time.Duration, lingers, events int) bool {
	return linger > 0 && lingers < busyLingers && time.Duration(lingers+1)*linger <= busyLinger && events >= lingers*busyEvents
}

// staysOpen says whether a frame whose time is over gets another linger. No caller
// may be waiting for it, since that caller may be the one that logs the next event; and there
// must be room for what it gathers. Caller holds mu.
func (l *lane) staysOpen(f *laneFrame) bool {
	return !f.awaited && lingersOn(l.p.cfg.Linger, f.lingers, f.events) && l.holds() && !l.p.buffer.above(busyBuffer)
}
