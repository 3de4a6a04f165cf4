package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/schemas"
)

// lane is one lane of a topic. What it knows of timers belongs to a run of it.
type lane struct {
	d *Dispatcher
	laneID
	of     int // lanes of the topic
	nudged chan struct{}
}

func newLane(d *Dispatcher, id laneID, of int) *lane {
	return &lane{d: d, laneID: id, of: of, nudged: make(chan struct{}, 1)}
}

// nudge has the lane look again: members, groups or slots changed.
func (l *lane) nudge() {
	select {
	case l.nudged <- struct{}{}:
	default:
	}
}

// run loads the lane and fires what is due until ctx ends or the front cannot be followed. Nothing of the run
// before reaches it.
func (l *lane) run(ctx, all context.Context, wg *sync.WaitGroup) error {
	if err := l.whole(ctx); err != nil {
		return err
	}
	return newRun(l).loop(ctx, all, wg)
}

// whole refuses a front that lost records. What is called then is written under sequences that were given before,
// and its history would be lost; and timers that ended could be there again, of an older copy.
func (l *lane) whole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, wholeTimeout)
	defer cancel()
	topics, err := l.d.cfg.Registry.Topics(ctx)
	if err != nil {
		return err
	}
	if err := fronts.CheckWhole(ctx, l.d.js, schemas.StreamTimers, topics); err != nil {
		return err
	}
	return fronts.CheckCopies(ctx, l.d.js, schemas.StreamTimers, topics, l.d.cfg.Registry.Copies)
}

// wholeTimeout bounds the look at the front before a run. It reads the checkpoints of every topic
// of timers twice (CheckWhole, CheckCopies), some milliseconds each, and so has more than
// discoverTimeout. A look that fails ends the run, which begins again (work).
const wholeTimeout = 30 * time.Second
