package producer

import "time"

const (
	// busyEvents is how many events each linger must have brought a frame that is to
	// wait on: company, so that waiting makes fewer frames. A frame costs all parts
	// together one to two milliseconds of CPU whatever is in it (its fsync, its place in
	// the router's batch, and in ClickHouse a block of 25 columns), as much as hundreds
	// of events.
	busyEvents = 2
	// lingersMore is how many times as long as before a frame waits that waits on: 20, 80,
	// 320 ms. Each look at it wakes the sender, so there are few.
	lingersMore = 4
	// busyLinger is how long a frame of a busy lane waits at most, and busyLingers how
	// many lingers that may be: so a shorter linger that was asked for stays short. A
	// process that dies loses what it had not sent, and a tail shows it so much later.
	// With 60 ms an event cost all parts 57 microseconds of CPU at 5,000 events/s, most of
	// it for frames (docs/measurements.md, 23 November 2026).
	busyLinger  = 320 * time.Millisecond
	busyLingers = 16
	// busyBuffer is the part of the buffer, one in so many, above which no frame that gets
	// an event waits longer than a linger.
	busyBuffer = 4
)

// longer returns how many lingers a frame waits that has so many events after so many
// lingers: more when events come fast, and not longer than most. It will be that much
// larger then, and JetStream, router, sinks and ClickHouse pay by the frame.
func longer(linger, most time.Duration, lingers, events int) int {
	next := lingersMore * lingers
	if linger <= 0 || next > busyLingers || time.Duration(next)*linger > most || events < lingers*busyEvents {
		return lingers
	}
	return next
}

// waitsOn has a frame whose time is over wait longer, and reports whether it does. No
// caller may be waiting for it, since that caller may be the one that logs the next event;
// and there must be room for what it gathers. Caller holds mu.
func (l *lane) waitsOn(f *laneFrame) bool {
	if f.awaited || !l.holds() || l.p.buffer.above(busyBuffer) {
		return false
	}
	most := busyLinger
	if l.p.cfg.Policy == Spool {
		most = min(most, spoolAfter) // what the death of the process may cost
	}
	before := f.lingers
	f.lingers = longer(l.p.cfg.Linger, most, before, f.events)
	return f.lingers > before
}

// waitsNoMore ends the wait of a frame that waits on once a caller waits for it or the room
// is gone, and reports whether it did: the sender then finds its time over. Caller holds mu.
func (l *lane) waitsNoMore(f *laneFrame) bool {
	if f.lingers == 1 || !f.awaited && !l.p.buffer.above(busyBuffer) {
		return false
	}
	f.lingers = 1
	return true
}
