package model

import (
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// drawOdds decides which faults a run has, and how often.
func (w *World) drawOdds() {
	for f := range faults {
		if odds := faults[f].odds; !w.coin(3) {
			w.odds[f] = max(2, odds*[...]int{1, 4, 12, 40}[w.rng.IntN(4)]/4)
		}
	}
	if !w.coin(6) {
		w.odds[EventsCut], w.odds[TailDamaged] = 0, 0
	}
	if w.odds[EventsCut] > 0 || !w.coin(6) {
		w.odds[ShardsCut] = 0
	}
	storm := w.rng.IntN(3 * len(storms))
	if w.storm != quiet {
		storm = int(w.storm) - 1
	}
	if storm < len(storms) {
		w.chaos *= 3
		for f, odds := range storms[storm] {
			w.odds[f] = odds
		}
	}
	if !w.coin(24) {
		w.odds[FrameDamaged] = 0
	}
	if w.odds[ShardsCut] > 0 { // one stream's loss at a time: what both lose is for repair
		w.odds[EventsCut], w.odds[TailDamaged], w.odds[FrameDamaged] = 0, 0, 0
	}
}

// Storm is faults that come together. A third of all runs have one.
type Storm int

// The storms.
const (
	quiet       Storm = iota
	RouterStorm       // several routers of a lane at once
	SinkStorm         // several inserts of a shard at once
	CutStorm          // EVENTS loses its end, SHARDS single frames, and parts of answers
	ShardsStorm       // SHARDS loses its end, and operators change the rotation
)

// storms are the odds in a storm.
var storms = [...]map[Fault]int{
	{
		RouterStalls: 8, RequestLate: 10, RotationChanged: 3, Takeover: 6,
		RouterDies: 0, NatsDies: 0, NatsDiesAfter: 0, AnswerLost: 0, ShardsFull: 0, LongOutage: 0, // or they would not get far
	},
	{SinkStalls: 6, RequestLate: 4, RequestTwice: 5, AnswerLost: 8, SinkDies: 15, EngineClockJumps: 15},
	{EventsCut: 12, TailDamaged: 12, AnswerShort: 8, LongOutage: 40, EventsFull: 0, ShardsFull: 0, ShardsCut: 0},
	{ShardsCut: 12, RouterStalls: 12, Takeover: 12, RotationChanged: 3, EventsCut: 0, EventsFull: 0, ShardsFull: 0},
}

// faultTimes says whether a fault strikes here.
func (w *World) faultTimes(f Fault) bool {
	if w.healed || w.odds[f] == 0 || w.rng.IntN(w.odds[f]) != 0 || faults[f].once && w.struck[f] > 0 {
		return false
	}
	w.struck[f]++
	return true
}

// ambientFaultSteps is how often the weather changes, in steps.
const ambientFaultSteps = 4

// ambientFaults is the faults that need no step of a process.
func (w *World) ambientFaults() {
	if w.steps >= w.fullUntil {
		w.events.full, w.shards.full = false, false
	}
	if w.steps >= w.unluckyUntil {
		w.unlucky = -1
	}
	if w.faultTimes(LongOutage) {
		s := [...]*server{w.nats, w.engine}[w.rng.IntN(2)]
		s.crash()
		w.now += schemas.DedupWindow/2 + time.Duration(w.rng.IntN(int(4*schemas.DedupWindow)))
	}
	if w.faultTimes(NatsClockJumps) {
		w.nats.ahead += time.Duration(w.rng.IntN(int(2 * schemas.DedupWindow)))
	}
	if w.faultTimes(EngineClockJumps) {
		w.engine.ahead += time.Duration(w.rng.IntN(int(time.Minute)))
		if w.broken(EngineClockSteps) {
			w.engine.ahead -= 2 * time.Minute
		}
	}
	if w.faultTimes(EventsFull) {
		w.events.full, w.fullUntil = true, w.steps+w.rng.IntN(128)
	}
	if w.faultTimes(ShardsFull) {
		w.shards.full, w.fullUntil = true, w.steps+w.rng.IntN(128)
	}
	if w.faultTimes(RotationChanged) {
		w.drawRotation()
	}
	if w.faultTimes(Takeover) {
		w.appoint(w.rng.IntN(w.lanes))
	}
	if len(w.oracle.frames) > 0 && w.faultTimes(FrameUnlucky) {
		w.unlucky, w.unluckyUntil = len(w.oracle.frames)-1, w.steps+w.rng.IntN(2000)
	}
	if w.struck[EventsCut] < maxCuts && len(w.events.msgs) > 0 && w.faultTimes(EventsCut) {
		w.cutEvents()
	}
	if w.struck[ShardsCut] < maxCuts && len(w.shards.msgs) > 0 && w.faultTimes(ShardsCut) {
		w.cutShards()
	}
	if w.odds[TailDamaged] > 0 && w.struck[TailDamaged]+w.struck[FrameDamaged] == 0 {
		w.damageTail()
	}
	if w.odds[FrameDamaged] > 0 && w.struck[TailDamaged]+w.struck[FrameDamaged] == 0 {
		w.damage()
	}
}

// damage takes away a frame of SHARDS above its shard's head, but not the last.
func (w *World) damage() {
	for _, id := range w.bucket.order {
		last := w.shards.lastOf(shardOf(id))
		for m := range w.shards.from(shardOf(id), 1) {
			if m != last && m.placed.Pos > w.table.heads[id] && w.faultTimes(FrameDamaged) {
				m.gone = true
				w.damaged[id] = m.placed.Pos
				return
			}
		}
	}
}

// drawRotation gives the topic thresholds of a few frames.
func (w *World) drawRotation() {
	w.bucket.rotate = schemas.Rotation{Rows: [...]uint64{5, 12, 30}[w.rng.IntN(3)]}
	if w.coin(3) {
		w.bucket.rotate.Span = time.Duration(2+w.rng.IntN(20)) * time.Hour
	}
}
