package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// newWorld draws what a run is like.
func newWorld(o Options) *World {
	w := &World{
		rng: rand.New(rand.NewPCG(o.Seed, 0)), breaks: o.Breaks, storm: o.Storm, tracing: o.Trace, unlucky: -1,
		events: newStream(), shards: newStream(), bucket: newBucket(), table: newTable(),
		damaged: map[schemas.Shard]uint64{}, tailLost: map[schemas.Shard]bool{}, tailTaken: map[schemas.Shard]bool{}, alarms: map[schemas.Shard]error{},
	}
	w.oracle = &oracle{w: w}
	w.events.discardsOld = w.broken(DiscardsOld)
	w.nats = &server{w: w, name: "NATS", before: NatsDies, after: NatsDiesAfter, reboot: func() { w.natsBoots++; w.events.restart(w.nats.clock()) }}
	w.engine = &server{w: w, name: "ClickHouse", before: EngineDies, after: EngineDiesAfter, reboot: func() { w.table.boot++ }}
	w.drawRotation()
	w.lanes = 1
	if w.coin(4) {
		w.lanes = 2 + w.rng.IntN(2)
	}
	w.copies, w.stops, w.shortened = make([]checkpoint.Checkpoint, w.lanes), make([]int, w.lanes), map[schemas.Shard]bool{}
	w.chaos = 300 + w.rng.IntN(700)
	frames, pace := 4+w.rng.IntN(40), 1+w.rng.IntN(3)
	if w.coin(12) { // enough to fill windows
		w.chaos, frames, pace = 1500, 150, 8
	}
	w.drawOdds()
	w.batchMessages = 1 + w.rng.IntN(8)
	w.insertFrames = 1 + w.rng.IntN(6)
	w.people(frames, pace)
	return w
}

// people makes the processes. Producers get pace turns to each other's one.
func (w *World) people(frames, pace int) {
	for i := range 1 + w.rng.IntN(3) {
		p := newProducer(w, i, frames)
		w.producers = append(w.producers, p)
		for range pace {
			w.turns = append(w.turns, p.step)
		}
	}
	w.routers = make([][]*process, w.lanes)
	w.owners = make([]*process, w.lanes)
	w.routersOfLanes()
	for i := range 2 + w.rng.IntN(2) {
		w.join(newSink(w, fmt.Sprintf("sink %d", i)))
	}
	w.join(newJanitor(w))
	w.join(newReader(w, "reader"))
	for range 2 + pace {
		w.turns = append(w.turns, w.deliver)
	}
}

// routersOfLanes makes three routers for each lane: those of one lane alone, which commit
// by themselves, or those of all lanes, which commit for all.
func (w *World) routersOfLanes() {
	var all []*process
	if w.coin(2) {
		for i := range 3 {
			all = append(all, newGroupRouter(w, fmt.Sprintf("router %d", i)))
			w.join(all[i])
		}
	}
	for lane := range w.lanes {
		w.routers[lane] = all
		for i := range 3 - len(all) {
			r := newRouter(w, fmt.Sprintf("router %d of lane %d", i, lane), lane)
			w.routers[lane] = append(w.routers[lane], r)
			w.join(r)
		}
		w.appoint(lane)
	}
}

func (w *World) join(p *process) {
	w.processes = append(w.processes, p)
	w.turns = append(w.turns, p.step)
}

// appoint gives a lane to one of its routers. The one before goes on until it
// loses a commit.
func (w *World) appoint(lane int) {
	w.owners[lane] = w.routers[lane][w.rng.IntN(len(w.routers[lane]))]
}
