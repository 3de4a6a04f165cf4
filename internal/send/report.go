package send

import (
	"cmp"
	"fmt"
	"os"
	"time"
)

// NewStats starts with nothing; report, when not empty, is the file that gets
// the number of each accepted line. words puts an error as people read it. Finish ends it.
func NewStats(report string, words func(error) string) (*Stats, error) {
	t := &Stats{words: words, refused: map[string]uint64{}, moved: time.Now(), reporting: report != "", wake: make(chan struct{}, 1), written: make(chan error, 1)}
	if !t.reporting {
		t.written <- nil
		return t, nil
	}
	f, err := os.OpenFile(report, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) //nolint:gosec // a list of numbers, for the user who asked
	if err != nil {
		return nil, err
	}
	go func() { t.written <- t.writeReport(f) }()
	return t, nil
}

// writeReport writes line numbers as they come. The producer's goroutine, which
// must not wait, only leaves them in pending.
func (t *Stats) writeReport(f *os.File) error {
	var failed error
	for range t.wake {
		t.mu.Lock()
		lines := t.pending
		t.pending = nil
		t.mu.Unlock()
		if _, err := f.Write(lines); err != nil && failed == nil {
			failed = fmt.Errorf("the report is not whole: %w", err)
		}
	}
	return cmp.Or(failed, f.Close())
}

// Finish ends the report; an answer that comes later is only counted.
func (t *Stats) Finish() error {
	t.mu.Lock()
	if t.reporting {
		t.nudge()
	}
	t.reporting = false
	close(t.wake)
	t.mu.Unlock()
	return <-t.written
}

// nudge wakes writeReport. Caller holds mu.
func (t *Stats) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}
