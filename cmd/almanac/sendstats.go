package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// stats counts what became of the records of one send.
type stats struct {
	bytes atomic.Int64 // of the input

	mu       sync.Mutex
	read     uint64
	accepted uint64
	unknown  uint64
	unsent   uint64
	spooled  uint64            // on disk, when the producer last spoke of them
	replayed uint64            // of earlier sends, from the spool
	noTime   uint64            // records without a time
	others   []string          // keys of those that may have been meant for it
	objects  uint64            // records of text that look like JSON objects
	refused  map[string]uint64 // by reason
	first    []refusal
	moved    time.Time // when a record was last accepted, or none waited
	last     error     // what the producer works around

	reporting bool   // line numbers are written
	pending   []byte // those not yet written
	wake      chan struct{}
	written   chan error // of the whole report
}

// refusal is one refused record.
type refusal struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
	Error  string `json:"error"`
}

// maxRefusals is how many refusals are told one by one; the rest is counted.
const maxRefusals = 100

// newStats starts with nothing; report, when not empty, is the file that gets
// the number of each accepted line.
func newStats(report string) (*stats, error) {
	t := &stats{refused: map[string]uint64{}, moved: time.Now(), reporting: report != "", wake: make(chan struct{}, 1), written: make(chan error, 1)}
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
func (t *stats) writeReport(f *os.File) error {
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

// finish ends the report; an answer that comes later is only counted.
func (t *stats) finish() error {
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
func (t *stats) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// timeless counts a record without a time, which gets now. other is a key that may have been meant for it.
func (t *stats) timeless(other string) {
	t.mu.Lock()
	t.noTime++
	t.offer(other)
	t.mu.Unlock()
}

// offer remembers a key that may have been meant for the time; of each record there are few. Caller holds mu.
func (t *stats) offer(other string) {
	if other != "" && !slices.Contains(t.others, other) {
		t.others = append(t.others, other)
	}
}

// object counts a line of text that looks like JSON.
func (t *stats) object() {
	t.mu.Lock()
	t.objects++
	t.mu.Unlock()
}

// allObjects reports whether every record was a line of text that looks like JSON: its
// sender may have meant the keys.
func (t *stats) allObjects() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read > 0 && t.objects == t.read
}

func (t *stats) took() {
	t.mu.Lock()
	if t.waiting() == 0 {
		t.moved = time.Now()
	}
	t.read++
	t.mu.Unlock()
}

// waiting is how many records have no answer yet. Caller holds mu.
func (t *stats) waiting() uint64 {
	return t.read - t.accepted - t.unknown - t.unsent - t.spooled - t.refusals()
}

func (t *stats) refusals() (n uint64) {
	for _, v := range t.refused {
		n += v
	}
	return n
}

func (t *stats) refuse(line int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	reason := reasonOf(err)
	t.refused[reason]++
	if len(t.first) < maxRefusals {
		t.first = append(t.first, refusal{line, reason, err.Error()})
	}
}

// reasonOf is a word for why a record was refused.
func reasonOf(err error) string {
	for word, is := range map[string]error{
		"record-too-long": intake.ErrTooLong, "no-time": intake.ErrNoTime,
		"malformed": intake.ErrSyntax, "bad-field": intake.ErrField,
	} {
		if errors.Is(err, is) {
			return word
		}
	}
	return cmp.Or(schemas.Reason(err), "other")
}

// answered is the producer's word on a submitted record.
func (t *stats) answered(line int, err error) {
	switch {
	case err == nil:
		t.mu.Lock()
		t.accepted++
		t.moved = time.Now()
		if t.reporting {
			t.pending = append(strconv.AppendInt(t.pending, int64(line), 10), '\n')
			t.nudge()
		}
		t.mu.Unlock()
	case errors.Is(err, producer.ErrSpooled):
		t.mu.Lock()
		t.spooled++
		t.mu.Unlock()
	case errors.Is(err, producer.ErrOutcomeUnknown):
		t.mu.Lock()
		t.unknown++
		t.mu.Unlock()
	case errors.Is(err, producer.ErrClosed):
		t.unsend()
	default:
		t.refuse(line, err)
	}
}

// spoolEnded says what became of the records that went to the spool: those that
// are not there any more were stored from it.
func (t *stats) spoolEnded(s producer.Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := min(t.spooled, s.Spooled)
	t.accepted += t.spooled - left
	t.spooled, t.replayed = left, s.Spool.Replayed
}

// unsend counts a record that was read and never sent.
func (t *stats) unsend() {
	t.mu.Lock()
	t.unsent++
	t.mu.Unlock()
}

// trouble is what the producer works around, such as a lost connection.
func (t *stats) trouble(err error) {
	t.mu.Lock()
	t.last = err
	t.mu.Unlock()
}

func (t *stats) lastTrouble() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		return ""
	}
	return "; the last word was: " + inWords(t.last)
}

// idle is how long records have waited without one being accepted.
func (t *stats) idle(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting() == 0 {
		return 0
	}
	return now.Sub(t.moved)
}

// counting counts the bytes read from r.
func (t *stats) counting(r io.Reader) io.Reader { return countingReader{r, &t.bytes} }

type countingReader struct {
	io.Reader
	n *atomic.Int64
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// summary is the outcome, as -o json prints it.
type summary struct {
	Read     uint64 `json:"read"`
	Accepted uint64 `json:"accepted"`
	Refused  uint64 `json:"refused"`
	// Unknown records were sent and not answered: they may be stored.
	Unknown uint64 `json:"unknown"`
	// Spooled records are on this machine's disk, and not stored yet; Replayed is
	// the events of earlier sends that were stored from there.
	Spooled  uint64 `json:"spooled"`
	Replayed uint64 `json:"replayed"`
	SpoolDir string `json:"spool_dir,omitempty"`
	// NotSent records were read when the work ended: they are not stored.
	NotSent uint64 `json:"not_sent"`
	// NoTime records said no time and got that of their sending.
	NoTime uint64 `json:"no_time"`
	// TimeFields are keys of those that may have been meant for the time.
	TimeFields []string          `json:"time_fields,omitempty"`
	ByReason   map[string]uint64 `json:"by_reason"`
	// Refusals are the first ones, with their lines.
	Refusals []refusal `json:"refusals"`
}

func (t *stats) summary() summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	return summary{
		Read: t.read, Accepted: t.accepted, Refused: t.refusals(), Unknown: t.unknown, NotSent: t.unsent + t.waiting(), NoTime: t.noTime, TimeFields: t.others,
		Spooled: t.spooled, Replayed: t.replayed,
		ByReason: maps.Clone(t.refused), Refusals: append([]refusal{}, t.first...),
	}
}

// outcome is the exit code's error.
func (s summary) outcome() error {
	switch {
	case s.Accepted == s.Read:
		return nil
	case s.Accepted == 0 && s.Spooled == 0:
		return errSaid
	}
	return errPartial
}

// shownRefusals is how many refusals are printed for people.
const shownRefusals = 10

func (s summary) print(w io.Writer) {
	for _, r := range s.Refusals[:min(len(s.Refusals), shownRefusals)] {
		_, _ = fmt.Fprintf(w, "line %d refused: %s\n", r.Line, r.Error)
	}
	if s.Refused > shownRefusals {
		_, _ = fmt.Fprintf(w, "… and %d more; by reason:", s.Refused-shownRefusals)
		for _, reason := range slices.Sorted(maps.Keys(s.ByReason)) {
			_, _ = fmt.Fprintf(w, " %s %d", reason, s.ByReason[reason])
		}
		_, _ = fmt.Fprintln(w)
	}
	_, _ = fmt.Fprintf(w, "%d read, %d accepted, %d refused", s.Read, s.Accepted, s.Refused)
	if s.Unknown > 0 {
		_, _ = fmt.Fprintf(w, ", %d unknown (sent and not answered: they may be stored)", s.Unknown)
	}
	if s.Spooled > 0 {
		_, _ = fmt.Fprintf(w, ", %d in the spool %s (the next send with --full spool stores them)", s.Spooled, s.SpoolDir)
	}
	if s.Replayed > 0 {
		_, _ = fmt.Fprintf(w, ", %d of earlier sends stored from the spool", s.Replayed)
	}
	if s.NotSent > 0 {
		_, _ = fmt.Fprintf(w, ", %d not sent", s.NotSent)
	}
	if s.NoTime > 0 {
		_, _ = fmt.Fprintf(w, ", %d had no time and got now", s.NoTime)
		if len(s.TimeFields) > 0 {
			_, _ = fmt.Fprintf(w, " (--ts-field %s takes it from there)", strings.Join(s.TimeFields, ","))
		}
	}
	_, _ = fmt.Fprintln(w)
}
