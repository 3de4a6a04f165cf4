package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Next is the next record in the order they were appended, by this process or
// an earlier one, but for those that were marked as settled when
// the spool was opened. It is valid until the
// next call. io.EOF: there is none now; one that is appended later comes. Any
// other error tells of what had to be passed over; the next call goes on.
func (s *Spool) Next() (*Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.position < len(s.segments) {
		g := s.segments[s.position]
		last := s.file != nil && s.position == len(s.segments)-1
		if s.reading == nil {
			f, err := os.Open(filepath.Join(s.dir, g.name()))
			if err != nil {
				return nil, s.passOver(g, err)
			}
			s.reading = f
			s.scan = scanner{r: f, salt: g.salt, body: s.scan.body, chunk: s.scan.chunk}
		}
		s.scan.size = g.bytes
		body, err := s.scan.next()
		var d *Damage
		switch {
		case errors.Is(err, io.EOF) && last:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			s.leave(g)
			continue
		case errors.As(err, &d):
			d.File = filepath.Join(s.dir, g.name())
			g.damaged = true
			s.corrupt.Add(1)
			return nil, d
		case err != nil:
			return nil, s.passOver(g, err)
		case body[0] != whatFrame:
			continue
		}
		r, ok := parseFrame(body)
		if !ok {
			s.corrupt.Add(1)
			g.damaged = true
			return nil, fmt.Errorf("%w: %s: a record before byte %d says nothing", ErrDamaged, g.name(), s.scan.at)
		}
		g.saw(r.Stream(), r.Head.Seq)
		if r.Head.Seq <= s.ackedUpTo.found[r.Stream()] {
			s.frames.Add(-1)
			s.events.Add(-int64(r.Head.Rows))
			continue
		}
		return &r, nil
	}
	return nil, io.EOF
}

// leave goes on to the next segment. Caller holds mu.
func (s *Spool) leave(g *segment) {
	if s.reading != nil {
		_ = s.reading.Close() // it was only read
		s.reading = nil
	}
	g.read = true
	s.position++
	kick(s.kicked)
}

// passOver leaves a segment that cannot be read; its file stays.
func (s *Spool) passOver(g *segment, err error) error {
	g.damaged = true
	s.corrupt.Add(1)
	s.leave(g)
	return fmt.Errorf("%w: the rest of segment %s cannot be read: %w", ErrDamaged, g.name(), err)
}
