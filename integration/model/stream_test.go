package model

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// Refusals of a stream.
var (
	errFull     = errors.New("the stream is full")
	errSequence = errors.New("wrong last sequence")
)

// subject names what messages are about: a lane of EVENTS, a shard, a lane's
// checkpoint, the dead letters.
type subject struct {
	kind  subjectKind
	lane  int
	shard schemas.Shard
}

type subjectKind uint8

const (
	laneSubject subjectKind = iota
	shardSubject
	routedSubject
	deadSubject
)

// message is one message of a stream. Its body never changes.
type message struct {
	subject
	seq  uint64
	at   time.Duration // when it was stored, on the server's clock
	gone bool          // purged

	frame  *frame                // of EVENTS, and of a shard
	placed schemas.Placed        // of a shard
	point  checkpoint.Checkpoint // of a checkpoint
	reason string                // of a dead letter, which has its frame too
}

// outgoing is a message of an atomic batch. When it expects, the last message of
// its subject must be the one with sequence after.
type outgoing struct {
	message
	expects bool
	after   uint64
}

// stream is EVENTS or SHARDS. Messages are kept after they were purged, for the
// oracle alone: every read passes over them.
type stream struct {
	msgs []*message             // msgs[i] has sequence i+1
	of   map[subject][]*message // the same, by subject
	last map[subject]uint64
	prev map[subject]uint64 // before last: what a replica that lags would answer
	full bool               // refuses (DiscardNew)
	// discardsOld has a full stream evict its oldest: a mutant's.
	discardsOld bool

	// ids are the Msg-Ids of EVENTS, in memory only: a restart reads them again
	// from the messages that are there and young enough.
	ids map[msgID]idSeen
}

type msgID struct {
	producer string
	lane     int
	seq      uint64
}

type idSeen struct {
	seq uint64
	at  time.Duration
}

func newStream() *stream {
	return &stream{of: map[subject][]*message{}, last: map[subject]uint64{}, prev: map[subject]uint64{}, ids: map[msgID]idSeen{}}
}

// store appends a message.
func (s *stream) store(m message, at time.Duration) *message {
	m.seq, m.at = uint64(len(s.msgs))+1, at
	s.msgs = append(s.msgs, &m)
	s.of[m.subject] = append(s.of[m.subject], &m)
	if s.prev[m.subject] = s.last[m.subject]; m.kind != deadSubject {
		s.last[m.subject] = m.seq
	}
	return &m
}

// publish stores a frame of EVENTS, unless its Msg-Id was seen within the
// window: then the answer is the same and nothing is stored.
func (s *stream) publish(f *frame, at time.Duration) (duplicate bool, err error) {
	id := msgID{f.Producer, f.lane, f.Seq}
	if seen, ok := s.ids[id]; ok && at-seen.at < schemas.DedupWindow {
		return true, nil
	}
	if s.full && !s.discardsOld {
		return false, errFull
	}
	if s.full {
		s.evict(4)
	}
	m := s.store(message{subject: subject{kind: laneSubject, lane: f.lane}, frame: f}, at)
	s.ids[id] = idSeen{m.seq, at}
	return false, nil
}

// evict removes the oldest messages.
func (s *stream) evict(n int) {
	for _, m := range s.msgs {
		if n > 0 && !m.gone {
			m.gone = true
			n--
		}
	}
}

// publishBatch stores all messages or none, and returns the last one's sequence.
func (s *stream) publishBatch(msgs []outgoing, at time.Duration) (uint64, error) {
	if s.full {
		return 0, errFull
	}
	for i := range msgs {
		if m := &msgs[i]; m.expects && s.last[m.subject] != m.after {
			return 0, errSequence
		}
	}
	for i := range msgs {
		s.store(msgs[i].message, at)
	}
	return uint64(len(s.msgs)), nil
}

// cut loses the messages from a sequence on: a server that is started again cuts a
// stream at a message that it cannot read. The sequences are given again.
func (s *stream) cut(from uint64) (lost []*message) {
	lost = slices.Clone(s.msgs[from-1:])
	s.msgs = s.msgs[:from-1]
	for _, m := range lost {
		of := s.of[m.subject]
		i, _ := slices.BinarySearchFunc(of, from, func(m *message, seq uint64) int { return cmp.Compare(m.seq, seq) })
		s.of[m.subject] = of[:i]
		s.relast(m.subject)
	}
	return lost
}

// relast looks for the last message of a subject again.
func (s *stream) relast(sub subject) {
	delete(s.last, sub)
	delete(s.prev, sub)
	for _, m := range s.of[sub] {
		if !m.gone {
			s.prev[sub], s.last[sub] = s.last[sub], m.seq
		}
	}
}

// at is the message of a sequence, nil when there is none.
func (s *stream) at(seq uint64) *message {
	if seq == 0 || seq > uint64(len(s.msgs)) || s.msgs[seq-1].gone {
		return nil
	}
	return s.msgs[seq-1]
}

// restart forgets the Msg-Ids that only memory held.
func (s *stream) restart(at time.Duration) {
	clear(s.ids)
	for _, m := range s.msgs {
		if m.kind == laneSubject && !m.gone && at-m.at < schemas.DedupWindow {
			s.ids[msgID{m.frame.Producer, m.frame.lane, m.frame.Seq}] = idSeen{m.seq, m.at}
		}
	}
}

// lastOf is the last message of a subject, nil when there is none.
func (s *stream) lastOf(sub subject) *message {
	if seq := s.last[sub]; seq > 0 {
		return s.msgs[seq-1]
	}
	return nil
}

// laggingLastOf is the message before the last of a subject, if it has one: what
// a direct get may answer from a replica that lags.
func (s *stream) laggingLastOf(sub subject) *message {
	if seq := s.prev[sub]; seq > 0 && !s.msgs[seq-1].gone {
		return s.msgs[seq-1]
	}
	return s.lastOf(sub)
}

// from yields the messages of a subject from a sequence on.
func (s *stream) from(sub subject, seq uint64) func(func(*message) bool) {
	return func(yield func(*message) bool) {
		msgs := s.of[sub]
		i, _ := slices.BinarySearchFunc(msgs, seq, func(m *message, seq uint64) int { return cmp.Compare(m.seq, seq) })
		for _, m := range msgs[i:] {
			if !m.gone && !yield(m) {
				return
			}
		}
	}
}

// purge removes the messages of a subject below a sequence.
func (s *stream) purge(sub subject, below uint64) (n int) {
	for m := range s.from(sub, 1) {
		if m.seq >= below {
			break
		}
		m.gone = true
		n++
	}
	if l := s.lastOf(sub); l != nil && l.gone {
		delete(s.last, sub)
	}
	return n
}
