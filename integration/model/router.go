package model

import (
	"slices"

	"github.com/almanac-events/almanac/schemas"
)

// lane is one run of one lane by one router: everything it knows it read since
// the run began, and any error throws it away.
type lane struct {
	*process
	number int

	rotation schemas.Rotation // the topic's, when the run began
	cp       schemas.Checkpoint
	ckSeq    uint64
	active   map[schemas.Month]*shardState
}

// newRouter routes a lane, beside others that do the same.
func newRouter(w *World, name string, number int) *process {
	return w.newProcess(name, RouterDies, RouterStalls, func(p *process) error {
		if w.owners[number] != p { // the lease is another's
			return nil
		}
		l := &lane{process: p, number: number, active: map[schemas.Month]*shardState{}}
		return l.run()
	})
}

func (l *lane) run() error {
	if err := l.start(); err != nil {
		return err
	}
	next := l.cp.Source + 1
	for {
		msgs, err := l.gather(next)
		if err != nil {
			return err
		}
		if len(msgs) == 0 {
			if err := l.pause(); err != nil {
				return err
			}
			continue
		}
		next = msgs[len(msgs)-1].seq + 1
		for len(msgs) > 0 {
			n, err := l.route(msgs)
			if err != nil {
				return err
			}
			msgs = msgs[n:]
		}
	}
}

// start loads the checkpoint, fences older routers off, and seals what rotations
// left before the fence. A shard that is retired later may still be another's
// who fenced this router off meanwhile.
func (l *lane) start() error {
	w := l.w
	err := l.read("load checkpoint", w.nats, func() {
		if m := w.shards.lastOf(routedOf(l.number)); m != nil {
			l.cp, l.ckSeq = m.point, m.seq
			l.cp.Windows = slices.Clone(l.cp.Windows)
		}
		l.rotation = w.bucket.rotate
	})
	if err != nil {
		return err
	}
	l.cp.Router, l.cp.Epoch = l.name, l.cp.Epoch+1
	retired, err := l.retired()
	if err != nil {
		return err
	}
	if !w.broken(NoFence) {
		if err := l.commit(&batch{}); err != nil {
			return err
		}
	}
	if w.broken(SealsWhatIsRetired) {
		if retired, err = l.retired(); err != nil {
			return err
		}
	}
	return l.sealAll(retired)
}

// gather reads the next few messages of the lane.
func (l *lane) gather(next uint64) (msgs []*message, err error) {
	w := l.w
	err = l.read("gather", w.nats, func() {
		for m := range w.events.from(laneOf(l.number), next) {
			if msgs = append(msgs, m); len(msgs) == w.batchMessages {
				break
			}
		}
	})
	return msgs, err
}

// route deals with the first messages in one atomic batch, and says how many
// they were. A message that must leave a shard which the batch adds to waits for
// the next one.
func (l *lane) route(msgs []*message) (int, error) {
	w := l.w
	b := &batch{}
	var left []retiredShard
	done := 0
fill:
	for ; done < len(msgs); done++ {
		m := msgs[done]
		f := m.frame
		switch reason := l.judge(f); {
		case reason == "repeated":
			l.cp.RepeatedFrames++
			l.cp.RepeatedRows += uint64(f.Rows)
		case reason != "":
			b.dead(f, reason)
			l.cp.Dead += uint64(f.Rows)
		default:
			s, reason, err := l.shardFor(b, f)
			if err != nil {
				return 0, err
			}
			if reason != "" && b.of(s) != nil {
				break fill
			}
			if reason != "" {
				was := s.entry.value
				if s, err = l.leave(s, reason); err != nil {
					return 0, err
				}
				left = append(left, retiredShard{was.Month, was.ID})
			}
			b.frame(w, s, f, m.seq)
			l.cp.Frames++
			l.cp.Rows += uint64(f.Rows)
		}
		l.take(f, m.seq)
	}
	l.cp.Source = msgs[done-1].seq
	if err := l.publish(b); err != nil {
		return 0, err
	}
	w.count[Routed] += done
	if w.broken(SealsWhatIsRetired) && len(left) > 0 {
		var err error
		if left, err = l.retired(); err != nil {
			return 0, err
		}
	}
	return done, l.sealAll(left)
}
