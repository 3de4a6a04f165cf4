package syslog

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// messageWait bounds the time from a message's first byte to its end: a connection has a slot of its listener. Between two messages a
	// sender may be silent as long as it likes.
	messageWait = time.Minute
	// When the input stops, a connection is read until it was silent for endSilence, and
	// for endWait at most.
	endSilence = 250 * time.Millisecond
	endWait    = 4 * time.Second
	// limitUnfinished is why a connection is closed, for counts.
	limitUnfinished = "unfinished"
)

// errUnfinished: the end of a message does not come.
var errUnfinished = fmt.Errorf("the end of a message did not come for %s", messageWait)

// source reads a connection: what is within a message in its time, and after stop what is still on its way.
type source struct {
	c     net.Conn
	began time.Time // of the message that is being read; zero: none is. Its reader's alone

	mu    sync.Mutex
	until time.Time // zero before stop
	bound time.Time // of the read under way; zero: none
}

// begins says that the next message begins, with what was read of it already.
func (s *source) begins(read []byte) {
	s.began = time.Time{}
	s.reads(read)
}

// reads notes the first byte of a message. What ends messages is none, and senders may repeat it.
func (s *source) reads(b []byte) {
	if s.began.IsZero() && len(trim(b)) > 0 {
		s.began = time.Now()
	}
}

// stop ends the source soon.
func (s *source) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Now().Add(endWait)
	s.deadline(time.Now().Add(endSilence)) // for the read under way
}

// deadline bounds the read under way, and those after it. mu is held.
func (s *source) deadline(at time.Time) {
	if !at.Equal(s.bound) {
		s.bound = at
		_ = s.c.SetReadDeadline(at)
	}
}

// Read implements io.Reader.
func (s *source) Read(b []byte) (int, error) {
	var ends time.Time // of the message
	if !s.began.IsZero() {
		ends = s.began.Add(messageWait)
	}
	s.mu.Lock()
	at := ends
	if !s.until.IsZero() {
		at = earlier(earlier(time.Now().Add(endSilence), s.until), ends)
	}
	s.deadline(at)
	s.mu.Unlock()
	n, err := s.c.Read(b)
	s.reads(b[:n])
	if errors.Is(err, os.ErrDeadlineExceeded) && !ends.IsZero() && !time.Now().Before(ends) {
		err = errUnfinished
	}
	return n, err
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}
