package document

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// Lock is what the last message on an id's lock subject says. NATS removes it once its time
// is over; then there is none.
type Lock struct {
	// Seq is the message's sequence, which a writer under the lock expects.
	Seq uint64
	// Last is the sequence of the last message of the subject where that is not a lock's; 0: the lock is the last one.
	Last uint64
	// Token names the lock from when it was acquired, as tokenOf its first message.
	Token uint64
	By    string
	For   time.Duration
	// Until is when NATS removes it, by the server's clock.
	Until time.Time
	// Released: what is left of a lock that was given back.
	Released bool
}

// Bounds of locks.
const (
	// MinLock is the shortest time that NATS keeps a message for.
	MinLock = time.Second
	// MaxLock bounds how long a holder that died keeps others out.
	MaxLock = time.Hour
	// MaxLockByBytes bounds the name of a holder.
	MaxLockByBytes = 128
	// releasedFor is how long what is left of a released lock stays.
	releasedFor = MinLock
)

// tokenBits of a token are of the time.
const tokenBits = 12

// tokenOf is the token of a lock whose first message has a sequence and a time. It grows by the sequence, whatever
// clocks do. Where DOCS lost its end, the sequence is given again: the lowest bits of the time, in µs, tell the lock
// that was lost from the new one, but for one in 4,096. A token is exact in JSON for all clients up to sequence 2^41.
func tokenOf(seq uint64, stored time.Time) uint64 {
	return seq<<tokenBits | uint64(stored.UnixMicro())&(1<<tokenBits-1)
}

// CheckLock reports why a lock cannot be had by a holder for a time.
func CheckLock(by string, d time.Duration) error {
	switch {
	case d < MinLock || d > MaxLock:
		return fmt.Errorf("%w: it is for %s, it must be for %s to %s", ErrLock, d, MinLock, MaxLock)
	case len(by) > MaxLockByBytes:
		return fmt.Errorf("%w: the holder's name has %d bytes, the limit is %d", ErrLock, len(by), MaxLockByBytes)
	}
	for _, r := range by {
		if r < ' ' || r == 0x7f {
			return fmt.Errorf("%w: the holder's name %q has control characters", ErrLock, by)
		}
	}
	return nil
}

// Expect returns the sequence of the last message of the lock's subject.
func (l *Lock) Expect() uint64 { return max(l.Seq, l.Last) }

// Held reports whether it is a lock that is held.
func (l *Lock) Held() bool { return l != nil && !l.Released }

// Header returns the headers of the lock's message.
func (l *Lock) Header() nats.Header {
	h := nats.Header{schemas.HeaderOp: {schemas.OpLocked}, jetstream.MsgTTLHeader: {l.For.Truncate(time.Second).String()}}
	if l.Released {
		h[schemas.HeaderOp], h[jetstream.MsgTTLHeader] = []string{schemas.OpReleased}, []string{releasedFor.String()}
	}
	if l.Token != 0 {
		h[schemas.HeaderLock] = []string{strconv.FormatUint(l.Token, 10)}
	}
	if l.By != "" {
		h[schemas.HeaderBy] = []string{l.By}
	}
	return h
}

// ParseLock reads a lock from a message that NATS stored at a time.
func ParseLock(seq uint64, stored time.Time, h nats.Header) (*Lock, error) {
	l := &Lock{Seq: seq, Token: tokenOf(seq, stored), By: h.Get(schemas.HeaderBy), Released: h.Get(schemas.HeaderOp) == schemas.OpReleased}
	if op := h.Get(schemas.HeaderOp); op != schemas.OpLocked && !l.Released {
		return nil, fmt.Errorf("%w: %s of a lock is %q, it must be %s or %s", schemas.ErrRecord, schemas.HeaderOp, op, schemas.OpLocked, schemas.OpReleased)
	}
	var err error
	if l.For, err = time.ParseDuration(h.Get(jetstream.MsgTTLHeader)); err != nil {
		return nil, fmt.Errorf("%w: a lock without a time: %w", schemas.ErrRecord, err)
	}
	if text := h.Get(schemas.HeaderLock); text != "" {
		if l.Token, err = strconv.ParseUint(text, 10, 64); err != nil || l.Token == 0 {
			return nil, fmt.Errorf("%w: %s is %q, it must be a number", schemas.ErrRecord, schemas.HeaderLock, text)
		}
	}
	l.Until = stored.Add(l.For).UTC()
	return l, nil
}
