package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// retrySync is the pause after the disk refused to make something durable.
const retrySync = time.Second

// run makes records and marks durable, and deletes what is settled.
func (s *Spool) run() {
	defer close(s.done)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-s.kicked:
		case <-s.hurry:
		case <-s.stop:
			if err := s.sync(); err != nil {
				s.opts.Fault(err)
			}
			return
		}
		wait := s.opts.Sync
		if err := s.sync(); err != nil {
			s.opts.Fault(fmt.Errorf("the spool %s: %w", s.dir, err))
			wait = retrySync
			kick(s.kicked)
		}
		s.opts.Synced()
		pause.Reset(wait)
		select {
		case <-pause.C:
		case <-s.hurry:
		case <-s.stop:
			kick(s.kicked)
			if err := s.sync(); err != nil {
				s.opts.Fault(err)
			}
			return
		}
	}
}

// sync makes durable what there is now.
func (s *Spool) sync() error {
	s.mu.Lock()
	ended, file, named, appended := s.unsynced, s.file, s.named, s.appended
	s.unsynced, s.named = nil, false
	if appended == s.durable {
		file = nil
	}
	marks, seqs, rewrite := s.ackedUpTo.encode()
	s.mu.Unlock()

	err := s.syncFiles(ended, file, named)
	s.mu.Lock()
	if err != nil {
		s.unsynced, s.named = append(ended, s.unsynced...), s.named || named
	} else {
		s.durable = appended
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, f := range ended {
		err = errors.Join(err, f.Close())
	}
	if len(marks) > 0 {
		if err := s.ackedUpTo.write(s.dir, marks, rewrite); err != nil {
			s.ackedUpTo.bytes = maxAckedFile + 1 // whatever is in the file now: rewrite it
			return err
		}
		s.mu.Lock()
		for of, seq := range seqs {
			s.ackedUpTo.durable[of] = seq
			if s.ackedUpTo.said[of] == seq {
				delete(s.ackedUpTo.dirty, of)
			}
		}
		s.mu.Unlock()
	}
	return errors.Join(err, s.trim())
}

func (s *Spool) syncFiles(ended []*os.File, file *os.File, named bool) error {
	for _, f := range ended {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	if file != nil {
		// It may be ended meanwhile, and is closed only by this goroutine.
		if err := file.Sync(); err != nil {
			return err
		}
	}
	if named {
		return syncDir(s.dir)
	}
	return nil
}

// trim deletes the segments that were read and are settled under durable marks.
func (s *Spool) trim() error {
	var gone []*segment
	s.mu.Lock()
	for len(s.segments) > 0 {
		g := s.segments[0]
		last := s.file != nil && len(s.segments) == 1
		if !g.acked(s.ackedUpTo.durable) || !g.read && !(last && s.reading != nil && s.scan.at == g.bytes) {
			break
		}
		if last {
			if err := s.finish(g); err != nil {
				s.mu.Unlock()
				return err
			}
			s.leave(g)
		}
		s.segments = s.segments[1:]
		s.position--
		gone = append(gone, g)
	}
	empty := len(s.segments) == 0
	if empty { // what was damaged was counted, and never settled
		s.frames.Store(0)
		s.events.Store(0)
	}
	s.mu.Unlock()
	if len(gone) == 0 {
		return nil
	}
	err := s.remove(gone)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.undeleted = s.undeleted || err != nil
	if err != nil || s.undeleted || !empty {
		return err
	}
	// Only now: a segment that came back would otherwise be sent again as if
	// it had not been seen.
	if len(s.segments) > 0 || len(s.ackedUpTo.dirty) > 0 {
		return nil // used again meanwhile
	}
	return s.ackedUpTo.forget()
}

// remove deletes segments, and puts those aside that are damaged.
func (s *Spool) remove(gone []*segment) (err error) {
	for _, g := range gone {
		path := filepath.Join(s.dir, g.name())
		if g.damaged {
			err = errors.Join(err, os.Rename(path, path+damagedSuffix[len(suffix):]))
			continue
		}
		if failed := os.Remove(path); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		s.bytes.Add(-g.bytes)
	}
	return errors.Join(err, syncDir(s.dir))
}

// acked says whether every record that was seen in g is under a mark.
func (g *segment) acked(durable map[Stream]uint64) bool {
	for of, seq := range g.highest {
		if durable[of] < seq {
			return false
		}
	}
	return true
}
