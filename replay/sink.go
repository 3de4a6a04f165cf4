package replay

import (
	"context"
	"io"
)

// sink is where a replay goes.
type sink interface {
	// unit takes a whole unit.
	unit(ctx context.Context, u *unit) error
	// event takes the event of a unit at place i.
	event(ctx context.Context, u *unit, i int) error
	// flush returns once everything taken is safe.
	flush(ctx context.Context) error
}

// writerSink writes lines.
type writerSink struct {
	w   io.Writer
	buf []byte
}

// writeBytes is how much is written at once when single events come fast.
const writeBytes = 64 << 10

func (s *writerSink) unit(ctx context.Context, u *unit) error {
	if len(u.lines) == 0 {
		return nil
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	_, err := s.w.Write(u.lines)
	return err
}

func (s *writerSink) event(ctx context.Context, u *unit, i int) error {
	s.buf = append(s.buf, u.lines[u.rows[i].from:u.rows[i].to]...)
	if len(s.buf) >= writeBytes {
		return s.flush(ctx)
	}
	return nil
}

func (s *writerSink) flush(context.Context) error {
	if len(s.buf) == 0 {
		return nil
	}
	_, err := s.w.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}
