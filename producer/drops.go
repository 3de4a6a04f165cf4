package producer

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// TypeDropped is the type of the events by which a producer reports its own
// drops, one for each cause, with the attributes AttrCause and AttrCount.
const (
	TypeDropped = "almanac.dropped"
	AttrCause   = "cause"
	AttrCount   = "count"
)

// reportEvery bounds how often drops are reported.
const reportEvery = time.Second

// reporter tells of drops: to Stderr and Hooks.OnDrop soon, and as events once
// frames get through again. It keeps what it told, and compares that with the
// counters: a drop costs no more than counting it. It has a goroutine of its
// own because Stderr may be a pipe that is not read.
type reporter struct {
	p     *Producer
	noted chan struct{}
	stop  chan struct{}
	done  chan struct{}

	printed map[string]uint64 // owned by run

	mu       sync.Mutex
	reported map[string]uint64 // in events that are stored or on their way
}

func newReporter(p *Producer) *reporter {
	return &reporter{
		p: p, noted: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		printed: map[string]uint64{}, reported: map[string]uint64{},
	}
}

// note says that something was dropped.
func (r *reporter) note() {
	select {
	case r.noted <- struct{}{}:
	default:
	}
}

func (r *reporter) run() {
	defer close(r.done)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for told := true; ; {
		if told { // nothing is left to tell: until there is
			select {
			case <-r.noted:
			case <-r.stop:
				r.print()
				return
			}
		}
		r.print()
		told = r.tell()
		pause.Reset(reportEvery)
		select {
		case <-pause.C:
		case <-r.stop:
			r.print()
			return
		}
	}
}

// print writes what was dropped since the last line.
func (r *reporter) print() {
	ds := untold(r.p.Stats().Dropped, r.printed)
	if len(ds) == 0 {
		return
	}
	// With a failing Stderr there is nowhere left to report to.
	_, _ = io.WriteString(r.p.cfg.Stderr, dropLine(r.p.topic.Name, ds))
	for _, d := range ds {
		r.printed[d.cause] += d.events
		if f := r.p.cfg.Hooks.OnDrop; f != nil {
			f(d.cause, d.events)
		}
	}
}

// tell logs an event for each cause with new drops, when frames get through. It
// is false when there is something left to tell.
func (r *reporter) tell() bool {
	if len(r.p.topic.Spec().Rules) > 0 || r.p.gone.Load() != nil {
		return true // a report is not an event of such a kind: Stderr, Hooks.OnDrop and Stats have it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ds := untold(r.p.Stats().Dropped, r.reported)
	if len(ds) > 0 && !r.p.sender.well.Load() {
		return false
	}
	for _, d := range ds {
		ev := Event{
			Type: TypeDropped, Level: "warn",
			Message: fmt.Sprintf("the producer dropped %d events: %s", d.events, d.cause),
			Attrs:   []Attr{schemas.String(AttrCause, d.cause), schemas.Int64(AttrCount, int64(d.events))},
		}
		failed := func(err error) {
			if err != nil && !errors.Is(err, ErrSpooled) {
				r.untell(d)
			}
		}
		if !r.p.try(&ev, failed) {
			return false
		}
		r.reported[d.cause] += d.events
	}
	return true
}

// untell takes back a report that was itself given up.
func (r *reporter) untell(d dropped) {
	r.mu.Lock()
	r.reported[d.cause] -= d.events
	r.mu.Unlock()
	r.note()
}

// dropped is a number of drops of one cause.
type dropped struct {
	cause  string
	events uint64
}

// untold is what total has beyond told, by cause in order.
func untold(total, told map[string]uint64) []dropped {
	var ds []dropped
	for _, cause := range slices.Sorted(maps.Keys(total)) {
		if n := total[cause] - told[cause]; n > 0 {
			ds = append(ds, dropped{cause, n})
		}
	}
	return ds
}

// dropLine is the line for Stderr.
func dropLine(topic string, ds []dropped) string {
	var b strings.Builder
	var sum uint64
	for i, d := range ds {
		sum += d.events
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", d.cause, d.events)
	}
	return fmt.Sprintf("almanac: topic %s: dropped %d events: %s\n", topic, sum, b.String())
}
