package recent

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/almanac-events/almanac/schemas/frame"
)

// checkpoints say how far each lane of a topic was routed at some time, which may be some
// seconds ago: what was routed later is in EVENTS above it, still, and is looked for there.
type checkpoints struct {
	lanes map[string]checkpoint.Checkpoint
	read  time.Time // when that was done
	epoch uint64    // the connection's outages, as they were before
}

// snapshotAge is how old a snapshot may be. Frames that were routed or stored since
// are evaluated once more, so it is short against the second that sinks gather; and
// what leaves EVENTS was routed 30 s before, at the very least. It must be shorter
// than indexLinger and HeadStaleness.
const snapshotAge = 3 * time.Second

// Snapshot is what a read of a topic goes by: how far each lane was routed before anything
// else was read. Whatever the read takes from EVENTS and from the registry comes through
// it, so it is read after it.
type Snapshot struct {
	checkpoints
	x     *Index
	topic string
	since time.Time // EVENTS is read as it is after this
}

// Range is the events that a read may need: their times in unix ns, both inclusive, and
// whether it meets the oldest first.
type Range struct {
	From, To  int64
	Ascending bool
}

func (r Range) meets(minTs, maxTs int64) bool { return maxTs >= r.From && minTs <= r.To }

// Snapshot begins a read: what was accepted before the call is found by it.
func (x *Index) Snapshot(ctx context.Context, topic string) (*Snapshot, error) {
	x = x.once()
	now := time.Now()
	if c := x.cache.cached(topic, now); c != nil { // a topic that was asked about a moment ago
		return &Snapshot{*c, x, topic, now}, x.cache.tailer(schemas.StreamEvents, topic).advance(ctx, x, now)
	}
	c, err := x.checkpoints(ctx, topic)
	return &Snapshot{*c, x, topic, c.read}, err
}

// Again begins the read again, by checkpoints that are read now.
func (s *Snapshot) Again(ctx context.Context) (*Snapshot, error) {
	x := s.x.once()
	c, err := x.checkpoints(ctx, s.topic)
	return &Snapshot{*c, x, s.topic, c.read}, err
}

// Outdated reports that the read must begin again. The connection was lost since, and the
// streams may have been restored below the checkpoints; or bare JSON came after them,
// which may be routed by now.
func (s *Snapshot) Outdated(p *Pending) bool {
	return s.epoch != s.x.cache.epoch() || p != nil && p.others.Load() && s.read.Before(s.since)
}

// cached returns the checkpoints of a topic if a query that begins now may go by them, else
// nil.
func (d *recentCache) cached(topic string, now time.Time) *checkpoints {
	d.mu.Lock()
	f := d.tailers[place{schemas.StreamEvents, schemas.TopicFilter(topic)}]
	d.mu.Unlock()
	if f == nil {
		return nil
	}
	c := f.snapshot.Load()
	if c == nil || now.Sub(c.read) > snapshotAge || c.epoch != d.epoch() {
		return nil
	}
	return c
}

// checkpoints reads a topic's.
func (x *Index) checkpoints(ctx context.Context, topic string) (*checkpoints, error) {
	epoch := x.cache.epoch()
	lanes, err := streams.Checkpoints(ctx, x.js, topic)
	if err == nil {
		err = x.fit(ctx, topic, epoch, lanes)
	}
	return &checkpoints{lanes, time.Now(), epoch}, err
}

// Months are the topic's months that may have events of a range, in its direction.
func (s *Snapshot) Months(ctx context.Context, r Range) ([]schemas.Month, error) {
	months := r.months()
	if months == nil {
		heads, err := s.x.reg.Heads(ctx, s.topic)
		if err != nil {
			return nil, err
		}
		for _, h := range heads {
			if h.Month.End() > r.From && h.Month.Start() <= r.To {
				months = append(months, h.Month)
			}
		}
	}
	if !r.Ascending {
		slices.Reverse(months)
	}
	return months, nil
}

// months are those the range lies in, where it is so short that asking each for
// its shards costs less than asking which there are.
func (r Range) months() (months []schemas.Month) {
	if r.From <= 1 || r.To == math.MaxInt64 {
		return nil
	}
	last := schemas.MonthOf(r.To)
	for m := schemas.MonthOf(r.From); m <= last; m = m.Next() {
		if months = append(months, m); len(months) > fewMonths {
			return nil
		}
	}
	return months
}

const fewMonths = 2

// Open opens a frame and judges it as the router does: what the router will keep as a dead
// letter is not an event. One of EVENTS is evaluated by what its lane's checkpoint remembers
// of its producer too. What the producer sent before is where its first copy went, and
// what was erased of that must not come back with the second.
func (s *Snapshot) Open(f *Frame, r *frame.Reader, t *schemas.Topic) error {
	if _, _, lane, err := schemas.EventsTokens(f.Subject); err == nil && checkpoint.Windows(s.lanes[lane].Windows).Check(f.Frame) != checkpoint.Fresh {
		return errRepeated
	}
	return f.open(r, t)
}

// errRepeated: the router refuses the frame, for its producer sent it before.
var errRepeated = errors.New("the frame came before")
