package schemas

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Source is a message of EVENTS, as what became of it in SHARDS names it, or a message of
// SHARDS, as it is named to people. A sequence alone does not identify a message: a stream
// that lost its end gives it again.
type Source struct {
	Seq    uint64 // sequence in the stream; 0: it is not known
	Stored int64  // unix ns when the stream stored the message; 0: it is not known
}

// Name names the message to people: 4711@2026-11-20T12:00:00.123456789Z. One whose time
// is not known is its sequence alone.
func (s Source) Name() string {
	seq := strconv.FormatUint(s.Seq, 10)
	if s.Stored == 0 {
		return seq
	}
	return seq + "@" + time.Unix(0, s.Stored).UTC().Format(time.RFC3339Nano)
}

var errName = errors.New("expected a number and a time, such as 4711@2026-11-20T12:00:00.123456789Z")

// ParseName reads what Name wrote.
func ParseName(text string) (s Source, err error) {
	seq, at, timed := strings.Cut(text, "@")
	if s.Seq, err = strconv.ParseUint(seq, 10, 63); err != nil || s.Seq == 0 {
		return Source{}, errName
	}
	if !timed {
		return s, nil
	}
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return Source{}, errName
	}
	if s.Stored, err = UnixNs(t); err != nil {
		return Source{}, errName
	}
	return s, nil
}

// Source is the message of EVENTS that the frame came from. Of a run of records it is the
// first, whose time the frame does not say: what lies up to a fence may then be some of
// its records, which are told by their own sequences.
func (p *Placed) Source() Source {
	if p.SourceFirst != 0 {
		return Source{Seq: p.SourceFirst}
	}
	return Source{p.SourceSeq, p.SourceTime}
}

// SourceOf is the message of EVENTS that a frame or dead letter came from, by its
// headers. What they do not say is 0.
func SourceOf(h nats.Header) (s Source) {
	s.Seq, _ = strconv.ParseUint(h.Get(HeaderSourceSeq), 10, 64)
	s.Stored, _ = strconv.ParseInt(h.Get(HeaderSourceTime), 10, 64)
	return s
}

// UpTo reports whether the message was accepted up to a fence: the last message of
// EVENTS at some moment, and that moment. A sequence at or below the fence's that was
// stored later was given again after a cut. Where one of the two does not say its
// time, the sequence alone decides.
func (s Source) UpTo(fence Source) bool {
	return s.Seq <= fence.Seq && (s.Stored == 0 || fence.Stored == 0 || s.Stored <= fence.Stored)
}

// Is reports whether two name the same message. Where one of the two does not say its
// time, the sequence alone decides.
func (s Source) Is(o Source) bool {
	return s.Seq == o.Seq && (s.Stored == 0 || o.Stored == 0 || s.Stored == o.Stored)
}
