package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

const (
	suffix        = ".spool"
	damagedSuffix = ".spool.damaged"
)

// segment is one file of records. Its fields are the Spool's, under its mutex.
type segment struct {
	number  uint64
	salt    uint64
	bytes   int64
	frames  uint64 // written to it
	events  uint64
	read    bool // the reader is past its end
	damaged bool
	highest map[Stream]uint64 // of what was read or written
}

func newSegment(number uint64) *segment {
	return &segment{number: number, salt: rand.Uint64(), highest: map[Stream]uint64{}}
}

func (g *segment) name() string { return fmt.Sprintf("%08d-%016x%s", g.number, g.salt, suffix) }

// saw notes a record of the segment.
func (g *segment) saw(s Stream, seq uint64) { g.highest[s] = max(g.highest[s], seq) }

// parseSegment reads a segment's name.
func parseSegment(name string) (*segment, bool) {
	g := &segment{highest: map[Stream]uint64{}}
	base, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return nil, false
	}
	if _, err := fmt.Sscanf(base, "%d-%x", &g.number, &g.salt); err != nil || g.name() != name {
		return nil, false
	}
	return g, true
}

// measure fills in what the segment holds: from its end record, or, when the
// process that wrote it was killed, by reading it, cutting what is torn, and
// ending it now.
func (g *segment) measure(dir string) (torn *Damage, err error) {
	path := filepath.Join(dir, g.name())
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	g.bytes = info.Size()
	s := &scanner{r: f, salt: g.salt, size: g.bytes}
	if g.bytes >= endBytes {
		if body, _, err := s.record(g.bytes - endBytes); err == nil && body[0] == whatEnd {
			g.frames, g.events = parseEnd(body)
			return nil, nil
		}
	}
	for {
		body, err := s.next()
		var d *Damage
		switch {
		case errors.Is(err, io.EOF):
			return torn, g.end(f)
		case errors.As(err, &d) && d.Torn:
			d.File = path
			torn = d
			if err := f.Truncate(d.From); err != nil {
				return torn, err
			}
			g.bytes = d.From
		case errors.As(err, &d): // told when it is passed over
		case err != nil:
			return torn, err
		case body[0] == whatFrame:
			if r, ok := parseFrame(body); ok {
				g.frames++
				g.events += uint64(r.Head.Rows)
			}
		}
	}
}

// end writes the end record.
func (g *segment) end(f *os.File) error {
	b := appendEnd(nil, g.salt, uint64(g.bytes), g.frames, g.events)
	if _, err := f.WriteAt(b, g.bytes); err != nil {
		return err // the next attempt writes over it
	}
	g.bytes += int64(len(b))
	return nil
}

// listSegments is the segments of a directory, oldest first, and the bytes of
// those that were put aside as damaged.
func listSegments(dir string) (segs []*segment, aside int64, err error) {
	entries, err := os.ReadDir(dir) // by name, and so by number
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), damagedSuffix) {
			if info, err := e.Info(); err == nil {
				aside += info.Size()
			} else if !errors.Is(err, fs.ErrNotExist) {
				return nil, 0, err
			}
		}
		if g, ok := parseSegment(e.Name()); ok {
			segs = append(segs, g)
		}
	}
	return segs, aside, nil
}

// syncDir makes names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
