package send

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

// readAll reads the files one after the other; line numbers go on from one to
// the next as if they were one.
func (s *Local) readAll(ctx context.Context, files []Input) error {
	return eachFile(ctx, files, s.Stats, s.Options.Multiline != nil, func(name string, plain io.Reader, before int) (lines int, err error) {
		submitted := ctx
		if _, ok := plain.(*intake.Pauses); ok {
			// The last record is known to end when reading does: it is sent all the same.
			late, cancel := context.WithCancel(context.WithoutCancel(ctx))
			defer cancel()
			defer context.AfterFunc(ctx, func() { time.AfterFunc(drainTimeout, cancel) })()
			submitted = late
		}
		r := intake.NewReader(plain, s.Options)
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
func (s *Local) submit(ctx context.Context, rec intake.Record, before int) error {
	line := before + rec.Line
	s.Stats.took()
	if s.Options.Format == intake.FormatText && looksLikeJSON(rec.Raw) {
		s.Stats.object()
	}
	if rec.Err != nil {
		s.Stats.refuse(line, s.refused(rec.Err))
		return nil
	}
	events, err := s.Options.Fit(&rec)
	if err != nil {
		s.Stats.refuse(line, err)
		return nil
	}
	timeless, other := rec.Event.Time.IsZero(), rec.OtherTime
	answered := together(len(events), func(err error) {
		if err == nil && timeless {
			s.Stats.timeless(other)
		}
		s.Stats.answered(line, s.refused(err))
	})
	for i := range events {
		err := s.Producer.Submit(ctx, events[i], answered)
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
func (s *Local) refused(err error) error {
	tooLong := errors.Is(err, schemas.ErrEventTooLarge) || errors.Is(err, intake.ErrTooLong)
	if !tooLong || s.Options.Long != intake.LongRefuse {
		return err
	}
	return fmt.Errorf("%w: pass --cut to keep its beginning, or --split to make several events of it", err)
}
