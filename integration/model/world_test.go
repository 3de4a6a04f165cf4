package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// Options of a run.
type Options struct {
	Seed   uint64
	Breaks Break // what is broken on purpose
	Storm  Storm // in every run, not in some
	Trace  bool  // keep the trace
}

// Result of a run.
type Result struct {
	Violation error
	Steps     int
	Simulated time.Duration
	Faults    [faultKinds]int
	Sights    [sightKinds]int
	Trace     []string
}

// ErrStuck: after everything was healed, something did not come to rest.
var ErrStuck = errors.New("not at rest")

// World is one run: servers, processes, the wire between them, one clock and one
// source of chance.
type World struct {
	rng    *rand.Rand
	breaks Break
	storm  Storm
	now    time.Duration
	steps  int
	healed bool

	nats, engine   *server
	events, shards *stream
	bucket         *bucket
	table          *table
	wire           []sent
	producers      []*producer
	processes      []*process
	routers        [][]*process // by lane
	owners         []*process   // by lane: who has the lease
	turns          []func()     // who may be next
	oracle         *oracle

	// Drawn by the seed.
	lanes, batchMessages, insertFrames, chaos int

	// The weather.
	odds                    [faultKinds]int
	fullUntil, unluckyUntil int
	unlucky                 int // id of the frame that does not get through; -1: none
	damaged                 map[schemas.Shard]uint64
	tailLost                map[schemas.Shard]bool // of damaged: the last frame, which no later one misses
	tailTaken               map[schemas.Shard]bool // stored or not
	natsBoots, cuts         int
	alarms                  map[schemas.Shard]error // shards that their sink stopped
	copies                  []checkpoint.Checkpoint // by lane: what the registry keeps of its checkpoint
	stops                   []int                   // by lane: how often in a row its router stopped
	shortened               map[schemas.Shard]bool  // SHARDS lost frames of it with its end

	shardsMade schemas.Shard
	violation  error
	struck     [faultKinds]int
	count      [sightKinds]int
	tracing    bool
	trace      []string
}

// Run plays a seed: chaos, then healing, then rest, then the oracle.
func Run(o Options) Result {
	w := newWorld(o)
	for w.steps < w.chaos && w.violation == nil {
		if w.steps%ambientFaultSteps == 0 {
			w.ambientFaults()
		}
		w.step()
	}
	w.heal()
	for limit := w.steps + 200*w.chaos; w.violation == nil && !w.atRest(); {
		for range 16 {
			w.step()
		}
		if w.steps > limit {
			w.violation = fmt.Errorf("%w: %s", ErrStuck, w.unrest())
		}
	}
	if w.violation == nil {
		w.oracle.check()
	}
	for _, p := range w.processes {
		p.stop()
	}
	return Result{Violation: w.violation, Steps: w.steps, Simulated: w.now, Faults: w.struck, Sights: w.count, Trace: w.trace}
}

// step lets one of them do one thing.
func (w *World) step() {
	w.steps++
	w.now += time.Duration(w.rng.IntN(int(400 * time.Millisecond)))
	w.turns[w.rng.IntN(len(w.turns))]()
}

// heal ends all faults: what was stuck goes on, and no producer logs any more. Of a
// lane's routers one is left; what the others sent is still on the wire.
func (w *World) heal() {
	w.healed = true
	w.nats.upAt, w.engine.upAt = w.now, w.now
	w.events.full, w.shards.full = false, false
	w.unlucky = -1
	w.turns = []func(){w.deliver, w.deliver}
	for _, p := range w.producers {
		p.left = 0
		w.turns = append(w.turns, p.step)
	}
	for _, p := range w.processes {
		if p.asleep = 0; p.dies != JanitorDies && (p.dies != RouterDies || slices.Contains(w.owners, p)) {
			w.turns = append(w.turns, p.step)
		}
	}
}

// atRest says whether nothing is on its way any more.
func (w *World) atRest() bool { return w.unrest() == "" }

// unrest is what is still on its way, or "".
func (w *World) unrest() string {
	for _, p := range w.producers {
		if !p.idle() {
			return p.id + " has frames without an answer"
		}
	}
	if len(w.wire) > 0 {
		return "requests are on the wire"
	}
	for lane := range w.lanes {
		last, routed := w.events.lastOf(laneOf(lane)), w.shards.lastOf(routedOf(lane))
		if !w.stopped(lane) && last != nil && (routed == nil || routed.point.Source < last.seq || w.misfit(&routed.point)) {
			return fmt.Sprintf("lane %d is not routed to its end", lane)
		}
	}
	for _, id := range w.bucket.order {
		if w.damaged[id] > 0 && w.alarms[id] != nil {
			continue
		}
		if m := w.shards.lastOf(shardOf(id)); m != nil && w.table.heads[id] < m.placed.Pos {
			return fmt.Sprintf("shard %s is stored to %d, it ends at %d", id, w.table.heads[id], m.placed.Pos)
		}
		if e := w.bucket.shard(id).value; e.Status == registry.Sealed && !w.tailLost[id] && !w.short(&e) {
			return fmt.Sprintf("shard %s is sealed at %d and not closed", id, e.SealedAt)
		}
	}
	return ""
}

// coin is true once in n.
func (w *World) coin(n int) bool { return w.rng.IntN(n) == 0 }

func (w *World) saw(s Sight) { w.count[s]++ }

// traces says whether a trace is kept; formatting one costs more than a step.
func (w *World) traces() bool { return w.tracing }

func (w *World) tracef(format string, a ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%5d %9.1fs  ", w.steps, w.now.Seconds())+fmt.Sprintf(format, a...))
}
