package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of Options.
const (
	// DefaultBytes is two hours of a busy service: 1,000 events a second come to
	// about 150 KB/s encoded.
	DefaultBytes = 1 << 30
	// MinBytes holds several frames of any size.
	MinBytes = 4 << 20
	// DefaultSync is what a power failure may cost, and ten fsyncs a second at
	// the most.
	DefaultSync = 100 * time.Millisecond
	// maxSegment is what one deletion gives back, and what one start has to read
	// after a kill: a twentieth of a second.
	maxSegment = 16 << 20
)

// Options of a spool. Zero fields mean their defaults.
type Options struct {
	// MaxBytes bounds the segments together. Default DefaultBytes; at least
	// MinBytes.
	MaxBytes int64
	// SegmentBytes is when the next segment begins. Default 16 MiB, or an
	// eighth of MaxBytes when that is less.
	SegmentBytes int64
	// Sync is how long after it was appended a record is made durable, at most.
	// Default DefaultSync.
	Sync time.Duration
	// Synced is called, from a goroutine of the spool, when something became
	// durable. It must not wait.
	Synced func()
	// Fault hears what the spool works around: damage, a failing disk. It must
	// not wait. May be nil.
	Fault func(error)
}

// Stats counts what a spool holds and what happened to it since it was opened.
type Stats struct {
	// Bytes on disk, damaged segments that were put aside included.
	Bytes int64
	// Frames and Events that wait to be stored. Those that were stored just
	// before a kill count until they are read again.
	Frames, Events uint64
	// Torn ends that were cut.
	Torn uint64
	// Corrupt places that were passed over.
	Corrupt uint64
}

// Spool is an open directory. Append, Next, Settle and Settled belong to one
// goroutine; the rest may be called from any.
type Spool struct {
	dir  string
	opts Options
	lock *os.File

	bytes, frames, events, torn, corrupt atomic.Int64
	damage                               []*Damage // found by Open

	mu        sync.Mutex
	segments  []*segment // oldest first
	number    uint64     // of the last segment
	file      *os.File   // of the last segment, while it is written
	unsynced  []*os.File // ended and not yet durable
	named     bool       // a name in the directory is not yet durable
	appended  uint64     // records
	durable   uint64     // of them
	ackedUpTo ackedUpTo
	// undeleted: a settled segment could not be deleted. The next process finds it
	// again, so the marks stay.
	undeleted bool

	reading  *os.File
	scan     scanner
	position int // in segments, of what is read

	buf    []byte
	kicked chan struct{}
	hurry  chan struct{}
	stop   chan struct{}
	done   chan struct{}
}

// Open takes the directory, making it if need be. It reads at most one segment,
// the one a killed process was writing, and starts one goroutine, which Close
// ends.
func Open(dir string, o Options) (_ *Spool, err error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultBytes
	}
	if o.MaxBytes < MinBytes {
		return nil, fmt.Errorf("a spool of %d bytes is too small, it must have %d or more", o.MaxBytes, MinBytes)
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = min(maxSegment, o.MaxBytes/8)
	}
	if o.Sync == 0 {
		o.Sync = DefaultSync
	}
	if o.Fault == nil {
		o.Fault = func(error) {}
	}
	if o.Synced == nil {
		o.Synced = func() {}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the spool: %w", err)
	}
	s := &Spool{dir: dir, opts: o,
		kicked: make(chan struct{}, 1), hurry: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	if s.lock, err = lock(filepath.Join(dir, "lock")); err != nil {
		return nil, fmt.Errorf("the spool: %w", err)
	}
	if err := s.load(); err != nil {
		_ = s.lock.Close()
		return nil, fmt.Errorf("the spool %s: %w", dir, err)
	}
	go s.run()
	return s, nil
}

// load finds what earlier processes left.
func (s *Spool) load() error {
	segs, aside, err := listSegments(s.dir)
	if err != nil {
		return err
	}
	bytes := aside
	for _, g := range segs {
		torn, err := g.measure(s.dir)
		if err != nil {
			return err
		}
		if torn != nil {
			s.torn.Add(1)
			s.damage = append(s.damage, torn)
		}
		s.number = max(s.number, g.number)
		bytes += g.bytes
		s.frames.Add(int64(g.frames))
		s.events.Add(int64(g.events))
	}
	s.segments = segs
	s.bytes.Store(bytes)
	bad, err := s.ackedUpTo.load(filepath.Join(s.dir, ackedName))
	s.damage = append(s.damage, bad...)
	s.corrupt.Add(int64(len(bad)))
	return err
}

// Stats reads the counters. It does not wait.
func (s *Spool) Stats() Stats {
	n := func(a *atomic.Int64) uint64 { return uint64(max(a.Load(), 0)) }
	return Stats{Bytes: s.bytes.Load(), Frames: n(&s.frames), Events: n(&s.events), Torn: n(&s.torn), Corrupt: n(&s.corrupt)}
}

// Found is the damage Open met.
func (s *Spool) Found() []*Damage { return s.damage }

// Append writes a record and returns its number, from 1, for Safe. An error
// means it was not written; ErrFull that the bound is reached.
func (s *Spool) Append(r *Record) (number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.writable()
	if err != nil {
		return 0, err
	}
	s.buf, err = appendFrame(s.buf[:0], g.salt, uint64(g.bytes), r)
	if err != nil {
		return 0, err
	}
	if s.bytes.Load()+int64(len(s.buf))+endBytes > s.opts.MaxBytes {
		return 0, fmt.Errorf("%w: %s has %d of %d bytes", ErrFull, s.dir, s.bytes.Load(), s.opts.MaxBytes)
	}
	if _, err := s.file.WriteAt(s.buf, g.bytes); err != nil {
		// What was written of it is cut, or written over by the next.
		return 0, errors.Join(err, s.file.Truncate(g.bytes))
	}
	g.bytes += int64(len(s.buf))
	g.frames++
	g.events += uint64(r.Head.Rows)
	g.saw(r.Stream(), r.Head.Seq)
	s.bytes.Add(int64(len(s.buf)))
	s.frames.Add(1)
	s.events.Add(int64(r.Head.Rows))
	s.appended++
	kick(s.kicked)
	return s.appended, nil
}

// writable is the segment to append to, a new one when the last is full. Caller
// holds mu.
func (s *Spool) writable() (*segment, error) {
	if s.file != nil {
		g := s.segments[len(s.segments)-1]
		if g.bytes < s.opts.SegmentBytes {
			return g, nil
		}
		if err := s.finish(g); err != nil {
			return nil, err
		}
	}
	g := newSegment(s.number + 1)
	f, err := os.OpenFile(filepath.Join(s.dir, g.name()), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	s.number++
	s.file, s.named = f, true
	s.segments = append(s.segments, g)
	return g, nil
}

// finish ends the segment that is written. Caller holds mu.
func (s *Spool) finish(g *segment) error {
	before := g.bytes
	err := g.end(s.file)
	s.bytes.Add(g.bytes - before)
	if err != nil {
		return err
	}
	s.unsynced = append(s.unsynced, s.file)
	s.file = nil
	return nil
}

// Safe is how many records, in the order of Append, a power failure cannot take
// any more.
func (s *Spool) Safe() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.durable
}

// Ack says that every record of a stream up to seq is done with. Durable
// says when that is known on disk.
func (s *Spool) Ack(of Stream, seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ackedUpTo.set(of, seq) >= hurryBehind {
		kick(s.hurry)
	}
	kick(s.kicked)
}

// hurryBehind is how many seqs a stream's durable mark may be behind before
// Options.Sync is not waited for: a quarter of what a router tells apart, so
// that sending never has to wait for the disk on a disk that keeps up.
const hurryBehind = 16

// Acked takes the events of one frame off the counters.
func (s *Spool) Acked(events int) {
	s.frames.Add(-1)
	s.events.Add(-int64(events))
}

// Durable is the seq up to which a stream's records are settled, on disk.
func (s *Spool) Durable(of Stream) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ackedUpTo.durable[of]
}

// Close makes everything durable and gives the directory back. What was not
// settled waits for the next process.
func (s *Spool) Close() error {
	close(s.stop)
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.file != nil {
		g := s.segments[len(s.segments)-1]
		if err = s.finish(g); err != nil {
			err = errors.Join(err, s.file.Close())
		}
	}
	for _, f := range s.unsynced {
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if s.reading != nil {
		err = errors.Join(err, s.reading.Close())
	}
	return errors.Join(err, s.ackedUpTo.close(), s.lock.Close())
}

func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
