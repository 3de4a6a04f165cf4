package schemas

import (
	"strconv"

	"github.com/nats-io/nats.go"
)

// Source is a message of EVENTS, as what became of it in SHARDS names it. A sequence
// alone does not identify a message: a stream that lost its end gives it again.
type Source struct {
	Seq    uint64 // sequence in EVENTS; 0: it is not known
	Stored int64  // unix ns when EVENTS stored the message; 0: it is not known
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
