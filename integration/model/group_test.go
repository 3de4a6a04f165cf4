package model

import (
	"errors"
	"slices"
)

// newGroupRouter routes every lane that is its own, and commits what they have at
// hand in one atomic batch.
func newGroupRouter(w *World, name string) *process {
	return w.newProcess(name, RouterDies, RouterStalls, func(p *process) error {
		r := &groupRouter{process: p, lanes: make([]*lane, w.lanes)}
		p.connect()
		for {
			if p.outage() {
				return errDown
			}
			if err := r.round(); err != nil {
				return err
			}
		}
	})
}

// groupRouter is a router's lanes; nil are those it does not work.
type groupRouter struct {
	*process
	lanes []*lane
}

// grouped is a lane's part of a group, and its messages, the checkpoint last.
type grouped struct {
	*lane
	*share
	msgs []outgoing
}

// round has each lane fill a batch, and commits them together.
func (r *groupRouter) round() error {
	var parts []*grouped
	for n := range r.lanes {
		if r.lanes[n] == nil && r.w.owners[n] == r.process {
			l := newLane(r.process, n)
			if err := l.start(); err != nil {
				if over(err) {
					return err
				}
				continue // it starts again in the next round
			}
			r.lanes[n] = l
		}
		l := r.lanes[n]
		if l == nil {
			continue
		}
		p, err := l.fill()
		if err == nil && p != nil {
			if !r.w.broken(WidensAfter) {
				err = l.widenAll(p.batch)
			}
			parts = append(parts, &grouped{l, p, append(p.batch.msgs, l.checkpoint())})
		}
		if err = r.end(l, err); err != nil {
			return err
		}
		if r.lanes[n] == nil {
			parts = slices.DeleteFunc(parts, func(g *grouped) bool { return g.lane == l })
		}
	}
	if len(parts) == 0 {
		return r.pause()
	}
	return r.commit(parts)
}

// over says whether an error ends the process, not a lane's run alone.
func over(err error) bool { return errors.Is(err, errEnded) || errors.Is(err, errCrashed) }

// end ends a lane's run at an error; it begins again in the next round, if the lane
// is this router's still.
func (r *groupRouter) end(l *lane, err error) error {
	if err == nil || over(err) {
		return err
	}
	r.lanes[l.number] = nil
	return nil
}

// commit publishes all parts in one atomic batch. One that is refused is sent again
// lane by lane, each with the expectations it had. After any other error it is
// unknown whether it committed, and each lane finds out at its checkpoint.
func (r *groupRouter) commit(parts []*grouped) error {
	var msgs []outgoing
	for _, g := range parts {
		msgs = append(msgs, g.msgs...)
	}
	last, err := r.publishGroup(msgs)
	refused := errors.Is(err, errSequence) || errors.Is(err, errFull)
	if refused && len(parts) > 1 {
		r.w.saw(GroupsRefused)
	}
	if err == nil && len(parts) > 1 {
		r.w.saw(Groups)
	}
	behind := len(msgs) // messages from this part's first to the end of the batch
	for _, g := range parts {
		own, ownErr := last-uint64(behind-len(g.msgs)), err
		behind -= len(g.msgs)
		if refused {
			own, ownErr = r.again(g)
		}
		if ownErr == nil {
			g.committed(g.batch, len(g.msgs), own)
			if r.w.broken(WidensAfter) {
				ownErr = g.widenAll(g.batch)
			}
		}
		if ownErr == nil {
			ownErr = g.finish(g.share)
		}
		if errors.Is(ownErr, errSequence) {
			r.w.saw(LostLane)
		}
		if err := r.end(g.lane, ownErr); err != nil {
			return err
		}
	}
	return nil
}

// publishGroup publishes a group whole.
func (r *groupRouter) publishGroup(msgs []outgoing) (last uint64, err error) {
	const most = 4
	for r.w.broken(GroupCutInside) && len(msgs) > most { // a bound in messages that does not ask whose they are
		if _, err := r.publishBatch("commit some of a group", msgs[:most]); err != nil {
			return 0, err
		}
		msgs = msgs[most:]
	}
	return r.publishBatch("commit group", msgs)
}

// again sends one lane's part of a refused group by itself.
func (r *groupRouter) again(g *grouped) (last uint64, err error) {
	w, msgs := r.w, g.msgs
	switch {
	case w.broken(GroupRefusalIsCommitted): // it was another's expectation
		err = r.read("read sequence", w.nats, func() { last = w.shards.last[routedOf(g.number)] })
		return last, err
	case w.broken(GroupResendsCheckpoint):
		msgs = msgs[len(msgs)-1:]
	case w.broken(GroupResendsBare):
		msgs = slices.Clone(msgs)
		for i := range msgs {
			msgs[i].expects = false
		}
	}
	return r.publishBatch("commit again", msgs)
}
