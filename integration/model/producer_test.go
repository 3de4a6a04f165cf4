package model

import (
	"fmt"
	"time"
)

// ackTimeout is how long a producer waits for an answer before it sends the very
// same frame again.
const ackTimeout = 8 * time.Second

// producer logs frames, sends them within its windows, and sends again what got
// no answer, for as long as it lives. It is driven by answers rather than by
// turns, and so it is not a process.
type producer struct {
	w      *World
	number int
	life   int // each restart is another producer, with another name
	id     string
	lanes  []Window
	left   int // frames it has yet to log, over all its lives
	inbox  []answer
}

// answer is what a producer hears of a frame. It goes to one life only.
type answer struct {
	life, lane int
	seq        uint64
	stored     bool
}

func newProducer(w *World, number, frames int) *producer {
	p := &producer{w: w, number: number, left: frames}
	p.start()
	return p
}

func (p *producer) start() {
	p.life++
	p.id = fmt.Sprintf("p%d.%d", p.number, p.life)
	p.lanes = make([]Window, p.w.lanes)
	for i := range p.lanes {
		p.lanes[i] = NewWindow()
	}
	p.inbox = nil
}

func (p *producer) step() {
	w := p.w
	if w.faultTimes(ProducerDies) { // what was not acknowledged is gone with it
		p.start()
		return
	}
	lane := w.rng.IntN(len(p.lanes))
	win := &p.lanes[lane]
	switch {
	case len(p.inbox) > 0 && w.coin(2):
		p.hear()
	case p.resend(lane):
	case p.left > 0 && (win.Space() || w.broken(NoProducerWindow)):
		p.left--
		f := w.newFrame(lane)
		fl := win.add(f)
		f.Producer, f.Seq = p.id, fl.seq
		p.send(fl)
	case len(p.inbox) > 0:
		p.hear()
	}
}

// hear takes one answer. An error and silence mean the same: again, when due.
func (p *producer) hear() {
	i := p.w.rng.IntN(len(p.inbox))
	a := p.inbox[i]
	p.inbox = append(p.inbox[:i], p.inbox[i+1:]...)
	if a.life != p.life || !a.stored {
		return
	}
	if fl := p.lanes[a.lane].take(a.seq); fl != nil {
		p.w.oracle.accept(fl.frame)
	}
}

// resend sends the oldest frame that waited too long, if there is one.
func (p *producer) resend(lane int) bool {
	w := p.w
	for _, fl := range p.lanes[lane].waiting {
		if int64(w.now) < fl.due {
			continue
		}
		switch {
		case w.broken(SilenceIsStored):
			p.lanes[lane].take(fl.seq)
			w.oracle.accept(fl.frame)
			return true
		case w.broken(Renumbers):
			p.lanes[lane].take(fl.seq)
			again := p.lanes[lane].add(fl.frame)
			twin := *fl.frame
			twin.Seq = again.seq
			again.frame = &twin
			p.send(again)
			return true
		}
		w.saw(Resends)
		p.send(fl)
		return true
	}
	return false
}

// send puts a frame on the wire.
func (p *producer) send(fl *flight) {
	w, f, life := p.w, fl.frame, p.life
	fl.due = int64(w.now + ackTimeout)
	w.saw(Sends)
	w.later(w.nats, func() {
		if w.unlucky == f.id {
			w.struck[FrameUnlucky]++
			return
		}
		duplicate, err := w.events.publish(f, w.nats.clock())
		if duplicate {
			w.saw(RefusedByMsgID)
		}
		if w.traces() {
			w.tracef("    EVENTS: frame %d, %s seq %d: duplicate %t, %v", f.id, f.Producer, f.Seq, duplicate, err)
		}
		switch {
		case w.faultTimes(w.nats.after):
			w.nats.crash()
		case w.faultTimes(AnswerLost):
		default:
			p.inbox = append(p.inbox, answer{life: life, lane: f.lane, seq: f.Seq, stored: err == nil})
		}
	})
}

// idle says whether nothing of the producer is on its way.
func (p *producer) idle() bool {
	for i := range p.lanes {
		if len(p.lanes[i].waiting) > 0 {
			return false
		}
	}
	return true
}
