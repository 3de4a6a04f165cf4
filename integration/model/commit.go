package model

import (
	"errors"
	"slices"
)

// publish widens what the batch widens, and commits it.
func (l *lane) publish(b *batch) error {
	widen := func() error {
		for _, t := range b.touched {
			if err := l.widen(&t.state.entry, t.lo, t.hi, t.state.tail.rows); err != nil {
				return err
			}
		}
		return nil
	}
	if l.w.broken(WidensAfter) {
		if err := l.commit(b); err != nil {
			return err
		}
		return widen()
	}
	if err := widen(); err != nil {
		return err
	}
	return l.commit(b)
}

// commit publishes the batch with the checkpoint as its last message. After an
// error it is unknown whether it committed: the next run reads the checkpoint.
func (l *lane) commit(b *batch) error {
	w := l.w
	cp := l.cp
	cp.Windows = slices.Clone(cp.Windows)
	if w.broken(ForgetsWindows) {
		cp.Windows = nil
	}
	check := outgoing{message: message{subject: routedOf(l.number), point: cp}, expects: !w.broken(NoCheckpointExpectation), after: l.ckSeq}
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
	for _, t := range b.touched {
		t.state.tail.seq = last - uint64(len(msgs)-1-t.last)
	}
	l.ckSeq = last
	return nil
}

func (l *lane) publishBatch(what string, msgs []outgoing) (last uint64, err error) {
	w := l.w
	publish := func() (uint64, error) { return w.shards.publishBatch(msgs, w.nats.clock()) }
	err = l.ask(call{what: what, at: w.nats, late: func() {
		if _, err := publish(); err == nil {
			w.saw(LateCommits)
		}
	}, do: func() (err error) {
		last, err = publish()
		return err
	}})
	return last, err
}
