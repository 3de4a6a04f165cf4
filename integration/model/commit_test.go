package model

import (
	"errors"
	"maps"
	"slices"
)

// publish widens what the batch widens, and commits it.
func (l *lane) publish(b *batch) error {
	if l.w.broken(WidensAfter) {
		if err := l.commit(b); err != nil {
			return err
		}
		return l.widenAll(b)
	}
	if err := l.widenAll(b); err != nil {
		return err
	}
	return l.commit(b)
}

// widenAll has the registry cover what the batch brings.
func (l *lane) widenAll(b *batch) error {
	for _, t := range b.touched {
		if err := l.widen(&t.state.entry, t.lo, t.hi, t.state.tail.rows); err != nil {
			return err
		}
	}
	return nil
}

// commit publishes the batch with the checkpoint as its last message. After an
// error it is unknown whether it committed: the next run reads the checkpoint.
func (l *lane) commit(b *batch) error {
	w := l.w
	check := l.checkpoint()
	msgs := append(b.msgs, check)
	if w.broken(CheckpointAfter) && len(b.msgs) > 0 {
		if _, err := l.publishBatch("publish frames", b.msgs); err != nil {
			return err
		}
		msgs = []outgoing{check}
	}
	last, err := l.publishBatch("commit", msgs)
	switch {
	case errors.Is(err, errSequence):
		w.saw(LostLane)
		return err
	case errors.Is(err, errTimeout) && w.broken(SilenceIsCommitted):
		err = l.read("read sequence", w.nats, func() {
			last = max(w.shards.last[routedOf(l.number)], 1)
		})
	}
	if err != nil {
		return err
	}
	l.committed(b, len(msgs), last)
	return nil
}

// checkpoint is the message that ends the lane's batch.
func (l *lane) checkpoint() outgoing {
	cp := l.cp
	cp.Windows, cp.Tails = slices.Clone(cp.Windows), maps.Clone(cp.Tails)
	if l.w.broken(ForgetsWindows) {
		cp.Windows = nil
	}
	return outgoing{message: message{subject: routedOf(l.number), point: cp}, expects: !l.w.broken(NoCheckpointExpectation), after: l.ckSeq}
}

// committed notes where a batch of n messages lies, whose last one has the sequence.
func (l *lane) committed(b *batch, n int, last uint64) {
	for _, t := range b.touched {
		t.state.tail.seq = last - uint64(n-1-t.last)
	}
	l.ckSeq = last
	l.keepCopy()
}

func (p *process) publishBatch(what string, msgs []outgoing) (last uint64, err error) {
	w := p.w
	publish := func() (uint64, error) { return w.shards.publishBatch(msgs, w.nats.clock()) }
	err = p.ask(call{what: what, at: w.nats, late: func() {
		if _, err := publish(); err == nil {
			w.saw(LateCommits)
		}
	}, do: func() (err error) {
		last, err = publish()
		return err
	}})
	return last, err
}
