package producer

import (
	"runtime"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// lane is the frames of one lane. Lock order: lane.mu before sender.mu.
type lane struct {
	p      *Producer
	number int
	id     string // whose seqs these are: of an earlier producer, when its frames are sent from the spool
	index  int    // names it in answers
	// earlier is set for the frames of an earlier producer.
	earlier bool

	counters // its mutex guards all that follows
	shutting bool
	buffered int          // events in open, queue and window
	open     []*laneFrame // one per month, in the order they were opened
	queue    []*laneFrame // closed and never sent, oldest first
	window   window

	last   uint64 // the highest seq given
	spool  spooled
	onDisk int // events logged here that are only in the spool
}

const (
	// lockTries is how often Log tries for a busy lane before it lets others of its
	// core go first: some 100 ns, as long as Log itself holds one.
	lockTries = 50
	// lockYields is how often it does so before it sleeps: long enough for each of 64
	// goroutines that log at once to have had its turn.
	lockYields = 64
)

// lock takes mu for Log. A sync.Mutex does not spin while other goroutines of its
// core are ready, as they are where many log: it sleeps at once, and who slept for
// a millisecond is given the lock by its turn. One goroutine that the scheduler
// stopped while it held a lane so had all others queue up behind it, with idle cores
// beside them: sixteen on two cores took 170 ns an event, and 149 in this way
// (BenchmarkLogParallel16, medians of seven runs in turn).
func (l *lane) lock() {
	for range lockYields {
		for range lockTries {
			if l.mu.TryLock() {
				return
			}
		}
		runtime.Gosched()
	}
	l.mu.Lock()
}

// maxOpenMonths bounds the open frames of a lane: ten years of events read in any
// order. With more months than that, each event may close the oldest frame, and frames of one
// event cost as much as full ones. An open frame has little more memory than its events take,
// which the buffer bounds.
const maxOpenMonths = 120

// frameFor is the open frame of ts's month. Caller holds mu.
func (l *lane) frameFor(ts int64) *laneFrame {
	for _, f := range l.open {
		if ts >= f.from && ts < f.to {
			return f
		}
	}
	if len(l.open) == maxOpenMonths {
		l.close(l.open[0])
	}
	m := schemas.MonthOf(ts)
	f := &laneFrame{month: m, from: m.Start(), to: m.End(), opened: time.Now(), lingers: 1}
	var ok bool
	if f.builder, ok = l.p.builders.get(); !ok {
		f.builder = frame.NewBuilder(&l.p.topic)
	}
	l.open = append(l.open, f)
	return f
}

// close moves an open frame to the queue. Caller holds mu.
func (l *lane) close(f *laneFrame) {
	i := slices.Index(l.open, f)
	l.open = slices.Delete(l.open, i, i+1)
	f.order = l.p.order.Add(1)
	f.closed = time.Now()
	l.queue = append(l.queue, f)
	l.p.unencoded.Add(1)
}

// idle says whether nothing of the lane is on its way. Caller holds mu.
func (l *lane) idle() bool { return len(l.queue) == 0 && l.window.count == 0 }

// holdFor is how long an open frame may wait for the answers to earlier frames
// of its lane: ten round trips with fsync, and no longer than what an outage may
// cost a spool (spoolAfter).
const holdFor = 250 * time.Millisecond

// queuedFor is how long it may wait while a closed frame of its lane is not even sent:
// closed it would stand behind that one all the same, and be smaller.
const queuedFor = 2 * time.Second

// closeAt is when an open frame is closed unless it is full before: after its
// lingers (linger.go), or, while earlier frames of the lane are on their way, when
// those are answered. Sent at once it would only queue up behind them, and every part
// that follows pays by the frame: at full load frames are full, and a stream that cannot
// take as many frames as there are gets larger ones. Caller holds mu, and is the sender.
func (l *lane) closeAt(f *laneFrame) time.Time {
	wait := l.p.cfg.Linger * time.Duration(f.lingers)
	switch {
	case wait <= 0 || l.idle() || !l.holds():
	case len(l.queue) > 0:
		wait = max(wait, queuedFor)
	default:
		wait = max(wait, holdFor)
	}
	return f.opened.Add(wait)
}

// holds says whether the policy has no use for frames closed early: what makes
// room takes closed ones.
func (l *lane) holds() bool {
	switch l.p.cfg.Policy {
	case DropOldest:
		return false
	case Spool:
		s := l.p.sender.spool
		return !s.away && !s.pressed.Load()
	}
	return true
}

// closeDue closes the frames that waited long enough, and the one a caller
// waits for when the lane is idle. Caller holds mu.
func (l *lane) closeDue(now time.Time) {
	for i := 0; i < len(l.open); {
		f := l.open[i]
		for !l.closeAt(f).After(now) && l.waitsOn(f) {
		}
		if !l.closeAt(f).After(now) || f.urgent && l.idle() {
			l.close(f)
		} else {
			i++
		}
	}
}

// nextSend is the frame to send now, or nil: first one to send again, then a
// new one, for which the window must have room and room bytes be left. Caller
// holds mu.
func (l *lane) nextSend(now time.Time, room int, elects bool) *laneFrame {
	f := l.window.due(now)
	if f == nil {
		if len(l.queue) == 0 || l.behind() || l.window.held() || !l.window.space(l.floor()) {
			return nil
		}
		if f = l.queue[0]; f.payload == nil || weigh(len(f.payload)) > room {
			return nil
		}
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.window.add(f)
		l.last = f.seq
		f.head.Producer, f.head.Seq = l.id, f.seq
	}
	if f.attempts++; f.attempts == 1 {
		f.sent = now
	}
	same := time.Duration(0)
	if f.attempts > 1 && elects {
		same = schemas.Election
	}
	f.due = now.Add(ackWait(l.p.cfg.AckTimeout, same, f.attempts, random()))
	return f
}

// wakeAt is when the lane next needs the sender; zero for not at all. well is
// false while frames are being sent again. Caller holds mu.
func (l *lane) wakeAt() (at time.Time, well bool) {
	well = true
	for _, f := range l.open {
		at = earlier(at, l.closeAt(f))
	}
	for f := range l.window.all {
		at = earlier(at, f.due)
		well = well && f.attempts == 1 && !f.refused
	}
	return at, well
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// ack settles a frame the stream has. Caller holds mu.
func (l *lane) ack(f *laneFrame) {
	if l.earlier {
		l.p.replayed.Add(uint64(f.events))
	}
	l.stored += uint64(f.events)
	l.frames++
	l.resolve(f, nil)
	l.mark()
}

// giveUp settles a frame that will never be sent again. Caller holds mu.
func (l *lane) giveUp(f *laneFrame, cause string, err error) {
	if l.earlier {
		l.p.unreplayed.Add(uint64(f.events))
	}
	l.drop(cause, f.events)
	l.resolve(f, err)
	l.mark()
	l.p.report.note()
}

func (l *lane) resolve(f *laneFrame, err error) {
	f.resolved = true
	if f.spooled {
		l.p.spool.Acked(f.events)
	}
	l.free(f)
	l.p.sender.post(f.waiters, err)
	f.waiters = nil
}

// free takes a frame out of memory and its events out of the count it is in.
// Caller holds mu.
func (l *lane) free(f *laneFrame) {
	if f.loaded {
		l.onDisk -= f.events
	} else {
		l.buffered -= f.events
		l.p.buffer.release(f.events, f.charge)
	}
	if f.payload != nil {
		l.p.payloads.put(f.payload)
		f.payload = nil
	}
	if f.builder != nil && !f.claimed {
		f.builder.Reset()
		l.p.builders.put(f.builder)
		f.builder = nil
		l.p.unencoded.Add(-1)
	}
}

// evictable is the index of the oldest frame in the queue that DropOldest may
// drop, or -1: neither one that Publish or Submit waits for, nor one that a goroutine
// encodes now (claimed, and without a payload yet). Caller holds mu.
func (l *lane) evictable() int {
	return slices.IndexFunc(l.queue, func(f *laneFrame) bool {
		return !f.awaited && (f.payload != nil || !f.claimed)
	})
}

// evict drops the frame of the given order, if it is still the lane's oldest.
func (l *lane) evict(order uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.evictable()
	if i < 0 || l.queue[i].order != order {
		return false
	}
	f := l.queue[i]
	l.queue = slices.Delete(l.queue, i, i+1)
	l.giveUp(f, CauseOldest, ErrEvicted)
	return true
}

// flush closes what is open and makes b wait for every frame there is.
func (l *lane) flush(b *barrier) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.open) > 0 {
		l.close(l.open[0])
	}
	for _, f := range l.queue {
		f.waiters = append(f.waiters, b.add(f.events))
	}
	for f := range l.window.all {
		f.waiters = append(f.waiters, b.add(f.events))
	}
	if l.behind() {
		l.spool.held = append(l.spool.held, heldWaiter{l.last, b.add(l.onDisk)})
	}
}

// shut refuses all further events.
func (l *lane) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shutting = true
}

// abandon gives up every frame the lane has in memory and returns the number of
// events.
func (l *lane) abandon() (events int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.giveUpAll(CauseClosed, ErrClosed, errSentThenClosed)
}

// giveUpAll is abandon for a cause, with what those hear who wait for a frame that was not sent, or was. Caller holds mu.
func (l *lane) giveUpAll(cause string, unsent, sent error) (events int) {
	for len(l.open) > 0 {
		l.close(l.open[0])
	}
	events = l.buffered
	for _, f := range l.queue {
		l.giveUp(f, cause, unsent)
	}
	l.queue = nil
	for f := range l.window.all {
		l.giveUp(f, cause, sent)
	}
	l.window, l.last = newWindow(l.p.cfg.InFlight), 0
	return events
}
