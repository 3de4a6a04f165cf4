package send

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// Stats counts what became of the records of one send. Its methods may be called side by side.
type Stats struct {
	bytes atomic.Int64       // of the input
	words func(error) string // an error as people read it

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
	first    []Refusal
	moved    time.Time // when a record was last accepted, or none waited
	last     error     // what the producer works around

	reporting bool   // line numbers are written
	pending   []byte // those not yet written
	wake      chan struct{}
	written   chan error // of the whole report
}

// timeless counts a record without a time, which gets now. other is a key that may have been meant for it.
func (t *Stats) timeless(other string) {
	t.mu.Lock()
	t.noTime++
	t.offer(other)
	t.mu.Unlock()
}

// offer remembers a key that may have been meant for the time; of each record there are few. Caller holds mu.
func (t *Stats) offer(other string) {
	if other != "" && !slices.Contains(t.others, other) {
		t.others = append(t.others, other)
	}
}

// object counts a line of text that looks like JSON.
func (t *Stats) object() {
	t.mu.Lock()
	t.objects++
	t.mu.Unlock()
}

// AllObjects reports whether every record was a line of text that looks like JSON: its
// sender may have meant the keys.
func (t *Stats) AllObjects() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read > 0 && t.objects == t.read
}

func (t *Stats) took() {
	t.mu.Lock()
	if t.waiting() == 0 {
		t.moved = time.Now()
	}
	t.read++
	t.mu.Unlock()
}

// waiting is how many records have no answer yet. Caller holds mu.
func (t *Stats) waiting() uint64 {
	return t.read - t.accepted - t.unknown - t.unsent - t.spooled - t.refusals()
}

func (t *Stats) refusals() (n uint64) {
	for _, v := range t.refused {
		n += v
	}
	return n
}

func (t *Stats) refuse(line int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	reason := reasonOf(err)
	t.refused[reason]++
	if len(t.first) < maxRefusals {
		t.first = append(t.first, Refusal{line, reason, err.Error()})
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
func (t *Stats) answered(line int, err error) {
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
func (t *Stats) spoolEnded(s producer.Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := min(t.spooled, s.Spooled)
	t.accepted += t.spooled - left
	t.spooled, t.replayed = left, s.Spool.Replayed
}

// unsend counts a record that was read and never sent.
func (t *Stats) unsend() {
	t.mu.Lock()
	t.unsent++
	t.mu.Unlock()
}

// Trouble takes what the producer works around, such as a lost connection.
func (t *Stats) Trouble(err error) {
	t.mu.Lock()
	t.last = err
	t.mu.Unlock()
}

// LastTrouble is the last of it as the end of a sentence; empty: there was none.
func (t *Stats) LastTrouble() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		return ""
	}
	return "; the last word was: " + t.words(t.last)
}

// Idle is how long records have waited without one being accepted.
func (t *Stats) Idle(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting() == 0 {
		return 0
	}
	return now.Sub(t.moved)
}

// Bytes is how much of the input was read.
func (t *Stats) Bytes() int64 { return t.bytes.Load() }
