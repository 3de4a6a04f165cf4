package producer

import (
	"sync"
	"time"
)

// Stats is what became of the events so far. At any moment
//
//	Logged = Stored + the sum of Dropped + Buffered + Spooled
//
// holds exactly.
type Stats struct {
	// Logged is the events given to Log, and those Publish and Submit accepted.
	Logged uint64
	// Stored is the events the stream acknowledged.
	Stored uint64
	// Dropped is the events lost, by cause: one of the Cause constants, or the
	// word of schemas.Reason for events that broke a limit.
	Dropped map[string]uint64
	// Buffered is the events in open, closed and unanswered frames.
	Buffered uint64

	// Spooled is the events that are only in the spool, of those logged here.
	Spooled uint64

	// BufferedBytes is what the buffered events hold of Config.BufferBytes.
	BufferedBytes int
	// InFlight is the frames sent and not answered.
	InFlight int
	// OldestUnanswered is the age of the oldest closed frame that is not stored: next
	// to nothing while the stream takes what it is given.
	OldestUnanswered time.Duration
	// Frames is the frames the stream acknowledged.
	Frames uint64
	// Resent is how often a frame was sent again.
	Resent uint64
	// Refused is the events Publish and Submit did not accept. Their callers
	// were told, so they are in none of the other counts.
	Refused uint64

	// Spool is the state of the spool; zero under every policy but Spool.
	Spool SpoolStats
}

// SpoolStats is what the spool holds, of this producer and of earlier ones, and
// what happened to it since this one began.
type SpoolStats struct {
	// Bytes its files have, of Config.SpoolBytes.
	Bytes int64
	// Frames and Events in it that wait to be stored. What was stored just
	// before a kill counts until it is found out.
	Frames, Events uint64
	// Replayed is the events of earlier producers that were stored by this one.
	Replayed uint64
	// Dropped is the events of earlier producers the server refused for good.
	Dropped uint64
	// Torn is the ends of files that were never written whole and were cut.
	Torn uint64
	// Corrupt is the places that are not as they were written and were passed
	// over. Hooks.OnError names each.
	Corrupt uint64
}

// DroppedTotal is the sum of Dropped.
func (s Stats) DroppedTotal() (n uint64) {
	for _, v := range s.Dropped {
		n += v
	}
	return n
}

// Stats reads the counters. It takes each lane's lock once: call it every
// second, not with every event.
func (p *Producer) Stats() Stats {
	s := Stats{Dropped: map[string]uint64{}}
	now := time.Now()
	p.outer.mu.Lock()
	p.outer.addTo(&s)
	p.outer.mu.Unlock()
	for _, l := range p.lanes {
		l.mu.Lock()
		l.addTo(&s)
		s.Buffered += uint64(l.buffered)
		s.Spooled += uint64(l.onDisk)
		s.InFlight += l.window.count
		s.OldestUnanswered = max(s.OldestUnanswered, l.oldest(now))
		l.mu.Unlock()
	}
	_, s.BufferedBytes = p.buffer.held()
	if p.spool != nil {
		on := p.spool.Stats()
		s.Spool = SpoolStats{
			Bytes: on.Bytes, Frames: on.Frames, Events: on.Events, Torn: on.Torn, Corrupt: on.Corrupt,
			Replayed: p.replayed.Load(), Dropped: p.unreplayed.Load(),
		}
	}
	return s
}

// counters counts the events of one lane, or those that came to none. Each event
// is counted and moves on under one lock, so the sum holds at any moment.
type counters struct {
	mu      sync.Mutex
	logged  uint64
	stored  uint64
	dropped map[string]uint64
	frames  uint64
	resent  uint64
	refused uint64
}

// drop counts n lost events. Caller holds mu.
func (t *counters) drop(cause string, n int) {
	if t.dropped == nil {
		t.dropped = map[string]uint64{}
	}
	t.dropped[cause] += uint64(n)
}

func (t *counters) addTo(s *Stats) {
	s.Logged += t.logged
	s.Stored += t.stored
	s.Frames += t.frames
	s.Resent += t.resent
	s.Refused += t.refused
	for cause, n := range t.dropped {
		s.Dropped[cause] += n
	}
}

// oldest is the age of the lane's oldest closed frame. Caller holds mu.
func (l *lane) oldest(now time.Time) (age time.Duration) {
	for f := range l.window.all {
		age = max(age, now.Sub(f.sent))
	}
	if len(l.queue) > 0 {
		age = max(age, now.Sub(l.queue[0].closed))
	}
	return age
}
