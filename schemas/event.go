package schemas

import (
	"fmt"
	"time"
)

// Event is one thing that happened. Only Time, ID and strings: the zero value
// of every field is allowed, and an empty field costs one byte on the wire.
type Event struct {
	// Time is when it happened. The zero time.Time means now, by the
	// producer's clock. It decides the month, in UTC.
	Time time.Time
	// ID is made by the producer (UUIDv7) when zero.
	ID ID
	// Level, Service and Type are words of few distinct values.
	Level, Service, Type string
	// UserID is whom the event is about; the default key of a lane and the
	// handle of an erasure.
	UserID string
	// TraceID and SpanID link to a trace, in hex as the tracer writes them.
	TraceID, SpanID string
	// Message is the text for people.
	Message string
	// Attrs is everything else. An attribute named like a promoted field of the
	// topic goes to that column; the others to the attributes map.
	Attrs []Attr
}

// Bytes is the size that MaxEventBytes bounds: the sum of the event's strings.
func (e *Event) Bytes() int {
	n := len(e.Level) + len(e.Service) + len(e.Type) + len(e.UserID) +
		len(e.TraceID) + len(e.SpanID) + len(e.Message)
	for i := range e.Attrs {
		n += e.Attrs[i].bytes()
	}
	return n
}

// Validate reports why e cannot be accepted at now (unix ns), or nil. tsNs is
// the event's time in unix nanoseconds. Invalid UTF-8 is not an error: it is
// kept as it is and marked (see AttrInvalidUTF8).
func (e *Event) Validate(tsNs, nowNs int64) error { return e.validate(tsNs, nowNs, MaxFuture) }

func (e *Event) validate(tsNs, nowNs int64, ahead time.Duration) error {
	if err := validateTime(tsNs, nowNs, ahead); err != nil {
		return err
	}
	if len(e.Attrs) > MaxAttrs {
		return fmt.Errorf("%w: %d attributes, the limit is %d", ErrTooManyAttrs, len(e.Attrs), MaxAttrs)
	}
	for i := range e.Attrs {
		if k := e.Attrs[i].Key; k == "" || len(k) > MaxAttrKeyBytes {
			return fmt.Errorf("%w: attribute %d has a name of %d bytes, it must have 1 to %d", ErrAttrName, i+1, len(k), MaxAttrKeyBytes)
		}
	}
	if n := e.Bytes(); n > MaxEventBytes {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrEventTooLarge, n, MaxEventBytes)
	}
	return nil
}

// ChangedAfter returns the time of a record's change that follows one at prev, by the server's time now, unix ns:
// the changes of a key rise. Where prev lies more than MaxFuture ahead, a wrong clock wrote it, or the server's was
// set back since, and the time is now: what follows would be wrong as long as that.
func ChangedAfter(prev, now int64) int64 {
	if prev-now > int64(MaxFuture) {
		return now
	}
	return max(now, prev+1)
}

// ValidateTime reports why an event time is refused at now, both in unix
// nanoseconds. Times at or before 1970-01-01T00:00:00Z are refused as unset
// clocks, times more than MaxFuture ahead as wrong ones. Any other past is fine.
func ValidateTime(tsNs, nowNs int64) error { return validateTime(tsNs, nowNs, MaxFuture) }

func validateTime(tsNs, nowNs int64, ahead time.Duration) error {
	switch {
	case tsNs == 0:
		return fmt.Errorf("%w: 1970-01-01T00:00:00Z; give the event's real time, or none for now", ErrTimeZero)
	case tsNs < 0:
		return fmt.Errorf("%w: %s", ErrTimeTooOld, time.Unix(0, tsNs).UTC().Format(time.RFC3339Nano))
	case tsNs-nowNs > int64(ahead):
		return fmt.Errorf("%w: %s is %s ahead of the clock, the limit is %s", ErrTimeTooFarAhead,
			time.Unix(0, tsNs).UTC().Format(time.RFC3339Nano), time.Duration(tsNs-nowNs).Round(time.Second), ahead)
	}
	return nil
}

// CheckTimes reports whether events of the topic between lo and hi (unix ns) may stand
// under month m in a message stored at storedNs.
func (t *Topic) CheckTimes(lo, hi int64, m Month, storedNs int64) error {
	for _, ts := range []int64{lo, hi} {
		if err := validateTime(ts, storedNs, t.MaxFuture()); err != nil {
			return err
		}
	}
	for _, ts := range []int64{lo, hi} {
		if !m.Contains(ts) {
			return fmt.Errorf("%w: %s is not in %s", ErrFrameMonth, time.Unix(0, ts).UTC().Format(time.RFC3339Nano), m)
		}
	}
	return nil
}

// attr is the event's attribute of that name, nil when there is none.
func (e *Event) attr(name string) *Attr {
	for i := range e.Attrs {
		if e.Attrs[i].Key == name {
			return &e.Attrs[i]
		}
	}
	return nil
}
