package model

import (
	"maps"
	"slices"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// lane is one run of one lane by one router: everything it knows it read since
// the run began, and any error throws it away.
type lane struct {
	*process
	number int

	rotation schemas.Rotation // the topic's, when the run began
	cp       checkpoint.Checkpoint
	ckSeq    uint64
	active   map[schemas.Month]*shardState
	next     uint64         // where the next messages are read from
	known    schemas.Source // a message that EVENTS had
	boots    int            // of NATS, when the lane's consumer was made
	past     checkpoint.Checkpoint
	gathered []*message // and not routed yet
}

// newRouter routes a lane, beside others that do the same.
func newRouter(w *World, name string, number int) *process {
	return w.newProcess(name, RouterDies, RouterStalls, func(p *process) error {
		if w.owners[number] != p { // the lease is another's
			return nil
		}
		p.connect()
		return newLane(p, number).run()
	})
}

func newLane(p *process, number int) *lane {
	return &lane{process: p, number: number, active: map[schemas.Month]*shardState{}}
}

func (l *lane) run() error {
	if err := l.start(); err != nil {
		return err
	}
	for {
		p, err := l.fill()
		if err != nil {
			return err
		}
		if p == nil {
			err = l.pause()
		} else if err = l.publish(p.batch); err == nil {
			err = l.finish(p)
		}
		if err != nil {
			return err
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
			l.cp.Windows, l.cp.Tails = slices.Clone(l.cp.Windows), maps.Clone(l.cp.Tails)
		}
		l.rotation = w.bucket.rotate
	})
	if err != nil {
		return err
	}
	if l.ckSeq == 0 {
		if err := l.checkNew(); err != nil {
			return err
		}
	}
	if err := l.forgotten(); err != nil {
		return err
	}
	if err := l.fit(); err != nil {
		return err
	}
	if err := l.findKept(); err != nil {
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
	l.next = l.cp.Source + 1
	return l.sealAll(retired)
}

// gather reads the next few messages of the lane, unless some are left.
func (l *lane) gather() error {
	if len(l.gathered) > 0 {
		return nil
	}
	w := l.w
	again := false
	err := l.read("gather", w.nats, func() {
		if again = l.boots != w.natsBoots && w.givenAgain(l.known) && !w.broken(FollowsNumbers); again {
			return
		}
		l.boots = w.natsBoots
		for m := range w.events.from(laneOf(l.number), l.next) {
			l.next, l.known = m.seq+1, schemas.Source{Seq: m.seq, Stored: stamp(m)}
			if l.gathered = append(l.gathered, m); len(l.gathered) == w.batchMessages {
				break
			}
		}
	})
	if again {
		w.saw(TailersEnded)
		return errGivenAgain
	}
	return err
}

// share is what a lane commits at once: its batch, the messages that the batch deals
// with, and the shards that were left for it.
type share struct {
	*batch
	done int
	left []retiredShard
}

// fill deals with the first messages that there are in one batch, nil when there is
// none. A message that must leave a shard which the batch adds to waits for the next
// one.
func (l *lane) fill() (*share, error) {
	if err := l.gather(); err != nil {
		return nil, err
	}
	if len(l.gathered) == 0 {
		l.w.stops[l.number] = 0
		return nil, nil
	}
	w, msgs := l.w, l.gathered
	b := &batch{}
	var left []retiredShard
	done := 0
fill:
	for ; done < len(msgs); done++ {
		m := msgs[done]
		f := m.frame
		if rows, kept := l.cp.Keeps(schemas.Source{Seq: m.seq, Stored: stamp(m)}, ""); kept && !w.broken(KeepsLettersTwice) {
			w.saw(LettersKnown)
			l.cp.Dead += uint64(rows)
			l.take(f, m.seq)
			continue
		}
		switch reason := l.evaluate(f); {
		case reason == "repeated":
			l.cp.RepeatedFrames++
			l.cp.RepeatedRows += uint64(f.Rows)
		case reason != "":
			b.dead(m, reason)
			l.cp.Dead += uint64(f.Rows)
		default:
			s, reason, err := l.shardFor(b, f)
			if err != nil {
				return nil, err
			}
			if reason != "" && b.of(s) != nil {
				break fill
			}
			if reason != "" {
				was := s.entry.value
				if s, err = l.leave(s, reason); err != nil {
					return nil, err
				}
				left = append(left, retiredShard{was.Month, was.ID})
			}
			b.frame(w, s, f, m, l.cp.Era)
			l.cp.Frames++
			l.cp.Rows += uint64(f.Rows)
		}
		l.take(f, m.seq)
	}
	last := msgs[done-1]
	l.cp.Source, l.cp.Digest, l.cp.Stored = last.seq, digest(last.frame), stamp(last)
	l.cp.Pass()
	for _, t := range b.touched {
		s := t.state
		l.cp.Remember(s.entry.value.ID, checkpoint.Tail{Pos: s.tail.pos, Digest: s.tail.digest, Rows: s.tail.rows, Source: last.seq})
	}
	return &share{b, done, left}, nil
}

// finish seals what was left for a part that is committed.
func (l *lane) finish(p *share) error {
	l.w.count[Routed] += p.done
	l.w.stops[l.number] = 0
	l.gathered = l.gathered[p.done:]
	left := p.left
	if l.w.broken(SealsWhatIsRetired) && len(left) > 0 {
		var err error
		if left, err = l.retired(); err != nil {
			return err
		}
	}
	return l.sealAll(left)
}
