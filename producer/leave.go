package producer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// spoolCheck is how often Close looks whether it still waits for the stream.
const spoolCheck = 20 * time.Millisecond

// flushOrSpool is Flush for Close. Under the policy Spool it does not wait for what is
// on disk, nor for a stream that is away: the rest goes to disk, too.
func (p *Producer) flushOrSpool(ctx context.Context) error {
	if p.spool == nil {
		return p.Flush(ctx)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	flushed := make(chan error, 1)
	go func() { flushed <- p.Flush(ctx) }()
	tick := time.NewTicker(spoolCheck)
	defer tick.Stop()
	for {
		select {
		case err := <-flushed:
			if errors.Is(context.Cause(ctx), errOnDisk) {
				return nil
			}
			return err
		case <-tick.C:
			if p.sender.away.Load() || !p.inMemory() {
				stop(errOnDisk)
			}
		}
	}
}

// inMemory reports whether an event is in memory alone.
func (p *Producer) inMemory() bool {
	for _, l := range p.lanes {
		l.mu.Lock()
		alone := len(l.open) > 0 || len(l.queue) > 0
		for f := range l.window.all {
			alone = alone || !f.spooled
		}
		l.mu.Unlock()
		if alone {
			return true
		}
	}
	return false
}

// leave puts everything on disk that was not stored, and gives up what does not
// go there: Close's time is over. It returns the events that were given up.
func (s *sender) leave() (lost int) {
	s.spool.retryAt = time.Time{}
	for _, l := range s.p.lanes {
		s.encodeAll(l)
		s.keep(l, time.Now(), keepAll)
	}
	var ws []waiter
	for _, l := range s.p.lanes {
		l.mu.Lock()
		for f := range l.window.all {
			if f.spooled && !f.loaded {
				l.free(f)
				l.onDisk += f.events
			}
			if f.spooled {
				ws = append(ws, f.waiters...)
				f.waiters = nil
			}
		}
		for _, h := range l.spool.held {
			ws = append(ws, h.waiter)
		}
		l.spool.held = nil
		kept := l.window
		l.window = newWindow(l.p.cfg.InFlight)
		l.mu.Unlock()
		for f := range kept.all {
			if !f.spooled {
				l.mu.Lock()
				lost += f.events
				l.giveUp(f, CauseClosed, errSentThenClosed)
				l.mu.Unlock()
			}
		}
		lost += l.abandon()
	}
	final := fmt.Errorf("%w: %w", ErrClosed, ErrSpooled)
	if err := s.p.spool.Close(); err != nil {
		s.tell(err)
		final = fmt.Errorf("%w: %w: the spool: %w", ErrClosed, ErrOutcomeUnknown, err)
	}
	for _, c := range s.spool.unsafe {
		for _, w := range c.waiters {
			if !w.stay { // those are held, too
				ws = append(ws, w)
			}
		}
	}
	s.mu.Lock()
	ws = append(ws, s.spool.idle...)
	s.spool.idle, s.spool.over = nil, final
	s.mu.Unlock()
	for _, w := range ws {
		w.done(final)
	}
	return lost
}

// encodeAll closes and encodes what a lane has open. Calls to Log that came
// before Close may encode one themselves: they take no longer than encoding.
func (s *sender) encodeAll(l *lane) {
	l.mu.Lock()
	for len(l.open) > 0 {
		l.close(l.open[0])
	}
	l.mu.Unlock()
	for {
		l.mu.Lock()
		f := l.claim()
		waiting := false
		for _, q := range l.queue {
			waiting = waiting || q.payload == nil
		}
		l.mu.Unlock()
		switch {
		case f != nil:
			l.encode(f)
		case !waiting:
			return
		default:
			<-time.After(time.Millisecond)
		}
	}
}
