package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// sending is the work of one `send`.
type sending struct {
	p        *producer.Producer
	opts     intake.Options
	stats    *stats
	progress *progress // nil: none
	maxWait  time.Duration
	spool    bool // what cannot be sent goes to disk
	// why says why NATS stores nothing, nil where it does; note tells people. It may take seconds.
	why  func(context.Context) error
	note func(format string, args ...any)
}

// A send that waits says so after waitingAfter, and what for; then every waitingEvery until something is accepted.
const (
	waitingAfter = 2 * time.Second
	waitingEvery = time.Minute
)

// spoolWait is how long a send with a spool goes on after the last line
// without anything stored, unless --timeout says otherwise: a restart of NATS.
const spoolWait = 5 * time.Second

// silence is how long an input gives nothing until its last record is taken for whole, and is sent: where
// records have many lines only the next one tells where one ends.
const silence = time.Second

// drainTimeout is how long an interrupted send waits for answers that are due.
const drainTimeout = 3 * time.Second

// run reads and submits until the input ends, a signal comes or patience does,
// and returns when every submitted record is answered or given up.
func (s *sending) run(ctx context.Context, files []input) error {
	work, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	// Reading has a goroutine of its own: a read from a terminal or a pipe
	// cannot be interrupted, and is left behind then.
	read := make(chan error, 1)
	go func() { read <- s.readAll(work, files) }()

	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	flushed := make(chan struct{})
	found, next := make(chan error, 1), waitingAfter // found: an answer of why, which next is not asked before
	var failed error
	var stored uint64
	moved, patience := time.Now(), drainTimeout
	for done := false; !done; {
		select {
		case err := <-read:
			failed, read, moved = err, nil, time.Now()
			go func() {
				_ = s.p.Flush(work) // what it gives up was told to the tally
				close(flushed)
			}()
		case <-flushed:
			done = true
		case err := <-found:
			s.waits(err)
		case <-work.Done():
			done = true
		case now := <-tick.C:
			s.progress.draw(now)
			if idle := s.stats.idle(now); idle < waitingAfter {
				next = waitingAfter
			} else if idle >= next {
				next = idle + waitingEvery
				go func() { found <- s.why(work) }()
			}
			if s.spool {
				if st := s.p.Stats(); st.Stored+st.Spool.Replayed > stored {
					stored, moved = st.Stored+st.Spool.Replayed, now
				}
				if read == nil && now.Sub(moved) > cmp.Or(s.maxWait, spoolWait) {
					done, patience = true, 0 // what is left goes to disk now
				}
				continue
			}
			if s.maxWait > 0 && s.stats.idle(now) > s.maxWait {
				giveUp(fmt.Errorf("nothing was accepted for %s (--timeout)%s", s.maxWait, s.stats.lastTrouble()))
			}
		}
	}
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if read != nil && s.opts.Multiline != nil {
		select {
		case failed = <-read:
		case <-bye.Done():
		}
	}
	_ = s.p.Close(bye) // likewise
	if s.spool {
		s.stats.spoolEnded(s.p.Stats())
	}
	s.progress.draw(time.Now())
	s.progress.end()
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case work.Err() != nil:
		return context.Cause(work)
	}
	return failed
}

// waits tells what the send waits for.
func (s *sending) waits(why error) {
	idle := s.stats.idle(time.Now())
	if idle == 0 {
		return
	}
	what := "no answer to what was sent" + s.stats.lastTrouble()
	if why != nil {
		what = inWords(why)
	}
	s.progress.end()
	until := "it goes on when NATS stores; --timeout bounds the wait, --full spool keeps on disk what cannot be sent"
	if s.spool {
		until = "what cannot be sent is kept on disk"
	}
	s.note("nothing was accepted for %s: %s; %s", idle.Round(time.Second), what, until)
}

// readAll reads the files one after the other; line numbers go on from one to
// the next as if they were one.
func (s *sending) readAll(ctx context.Context, files []input) error {
	return eachFile(ctx, files, s.stats, s.opts.Multiline != nil, func(name string, plain io.Reader, before int) (lines int, err error) {
		submitted := ctx
		if _, ok := plain.(*intake.Pauses); ok {
			// The last record is known to end when reading does: it is sent all the same.
			late, cancel := context.WithCancel(context.WithoutCancel(ctx))
			defer cancel()
			defer context.AfterFunc(ctx, func() { time.AfterFunc(drainTimeout, cancel) })()
			submitted = late
		}
		r := intake.NewReader(plain, s.opts)
		for {
			rec, err := r.Next()
			if errors.Is(err, io.EOF) {
				return r.Lines(), nil
			}
			if err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
			if err := s.submit(submitted, rec, before); err != nil {
				return 0, err
			}
		}
	})
}

// eachFile calls read with the content of each file, unpacked, and how many lines those before
// it had. read returns how many this one has. Where pauses is set it hears of silences (intake.ErrPause) of
// what is not a file.
func eachFile(ctx context.Context, files []input, t *stats, pauses bool, read func(name string, plain io.Reader, before int) (lines int, err error)) error {
	before := 0
	for _, in := range files {
		plain, err := intake.Unpack(t.counting(in.r))
		if err != nil {
			return fmt.Errorf("%s: %w", in.name, err)
		}
		if pauses && !in.regular() {
			plain = intake.NewPauses(ctx, plain, silence)
		}
		lines, err := read(in.name, plain, before)
		if err != nil {
			return err
		}
		before += lines
		// All files were opened at the start: each is closed as it ends, stdin too.
		if c, ok := in.r.(io.Closer); ok {
			_ = c.Close()
		}
	}
	return nil
}

// looksLikeJSON reports whether a line of text begins and ends like an object or an array
// of them.
func looksLikeJSON(line []byte) bool {
	if inner, ok := bytes.CutPrefix(line, []byte{'['}); ok {
		line = bytes.TrimSuffix(inner, []byte{']'})
	}
	return bytes.HasPrefix(line, []byte(`{"`)) && bytes.HasSuffix(line, []byte{'}'})
}

// submit hands one record to the producer. Its error ends the work; a refused
// record does not.
func (s *sending) submit(ctx context.Context, rec intake.Record, before int) error {
	line := before + rec.Line
	s.stats.took()
	if s.opts.Format == intake.FormatText && looksLikeJSON(rec.Raw) {
		s.stats.object()
	}
	if rec.Err != nil {
		s.stats.refuse(line, s.refused(rec.Err))
		return nil
	}
	if rec.Event.Time.IsZero() {
		s.stats.timeless(rec.OtherTime)
	}
	events, err := s.opts.Fit(&rec)
	if err != nil {
		s.stats.refuse(line, err)
		return nil
	}
	answered := together(len(events), func(err error) { s.stats.answered(line, s.refused(err)) })
	for i := range events {
		err := s.p.Submit(ctx, events[i], answered)
		if err == nil {
			continue
		}
		ends := ctx.Err() != nil || errors.Is(err, producer.ErrClosed)
		if ends {
			err = producer.ErrClosed
		}
		for range events[i:] {
			answered(err)
		}
		if ends {
			return context.Cause(ctx)
		}
		return nil
	}
	return nil
}

// together returns what takes the answers to n events of one record: the last of them calls answered, with the
// first error.
func together(n int, answered func(error)) func(error) {
	if n == 1 {
		return answered
	}
	var mu sync.Mutex
	var first error
	return func(err error) {
		mu.Lock()
		n--
		last := n == 0
		first = cmp.Or(first, err)
		err = first
		mu.Unlock()
		if last {
			answered(err)
		}
	}
}

// refused adds to the refusal of a record that is too long what would keep it.
func (s *sending) refused(err error) error {
	tooLong := errors.Is(err, schemas.ErrEventTooLarge) || errors.Is(err, intake.ErrTooLong)
	if !tooLong || s.opts.Long != intake.LongRefuse {
		return err
	}
	return fmt.Errorf("%w: pass --cut to keep its beginning, or --split to make several events of it", err)
}
