package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/producer"
)

// ErrInterrupted is the end of a send whose context ended before its input did.
var ErrInterrupted = errors.New("interrupted")

// Local sends records to NATS, through a producer.
type Local struct {
	Producer *producer.Producer // Run closes it
	Options  intake.Options
	Stats    *Stats
	Progress Progress      // nil: none
	MaxWait  time.Duration // without one accepted; 0: without end, and with a spool spoolWait
	Spool    bool          // what cannot be sent goes to disk
	// Why says why NATS stores nothing, nil where it does. It may take seconds.
	Why func(context.Context) error
	// Note tells people.
	Note func(format string, args ...any)
}

// spoolWait is how long a send with a spool goes on after the last line
// without anything stored, unless --timeout says otherwise: a restart of NATS.
const spoolWait = 5 * time.Second

// drainTimeout is how long an interrupted send waits for answers that are due.
const drainTimeout = 3 * time.Second

// Run reads and submits until the input ends, ctx does, or MaxWait has passed without an answer,
// and returns when every submitted record is answered or given up.
func (s *Local) Run(ctx context.Context, files []Input) error {
	work, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	// Reading has a goroutine of its own: a read from a terminal or a pipe
	// cannot be interrupted, and is left behind then.
	read := make(chan error, 1)
	go func() { read <- s.readAll(work, files) }()

	progress := shown(s.Progress)
	tick := time.NewTicker(drawnEvery)
	defer tick.Stop()
	flushed := make(chan struct{})
	found := make(chan error, 1) // an answer of Why
	var notice notices
	var failed error
	var stored uint64
	moved, patience := time.Now(), drainTimeout
	for done := false; !done; {
		select {
		case err := <-read:
			failed, read, moved = err, nil, time.Now()
			go func() {
				_ = s.Producer.Flush(work) // what it gives up was told to the stats
				close(flushed)
			}()
		case <-flushed:
			done = true
		case err := <-found:
			s.waits(err)
		case <-work.Done():
			done = true
		case now := <-tick.C:
			progress.Draw(now)
			if notice.due(s.Stats.Idle(now)) {
				go func() { found <- s.Why(work) }()
			}
			if s.Spool {
				if st := s.Producer.Stats(); st.Stored+st.Spool.Replayed > stored {
					stored, moved = st.Stored+st.Spool.Replayed, now
				}
				if read == nil && now.Sub(moved) > cmp.Or(s.MaxWait, spoolWait) {
					done, patience = true, 0 // what is left goes to disk now
				}
				continue
			}
			if s.MaxWait > 0 && s.Stats.Idle(now) > s.MaxWait {
				giveUp(fmt.Errorf("nothing was accepted for %s (--timeout)%s", s.MaxWait, s.Stats.LastTrouble()))
			}
		}
	}
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if read != nil && s.Options.Multiline != nil {
		select {
		case failed = <-read:
		case <-bye.Done():
		}
	}
	_ = s.Producer.Close(bye) // likewise
	if s.Spool {
		s.Stats.spoolEnded(s.Producer.Stats())
	}
	progress.Draw(time.Now())
	progress.End()
	switch {
	case ctx.Err() != nil:
		return ErrInterrupted
	case work.Err() != nil:
		return context.Cause(work)
	}
	return failed
}

// waits tells what the send waits for.
func (s *Local) waits(why error) {
	idle := s.Stats.Idle(time.Now())
	if idle == 0 {
		return
	}
	what := "no answer to what was sent" + s.Stats.LastTrouble()
	if why != nil {
		what = s.Stats.words(why)
	}
	shown(s.Progress).End()
	until := "it goes on when NATS stores; --timeout bounds the wait, --full spool keeps on disk what cannot be sent"
	if s.Spool {
		until = "what cannot be sent is kept on disk"
	}
	s.Note("nothing was accepted for %s: %s; %s", idle.Round(time.Second), what, until)
}
