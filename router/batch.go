package router

import (
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// tail is the end of a shard: its last frame.
type tail struct {
	pos    uint64
	seq    uint64 // in SHARDS; 0: the shard is empty
	digest string
	rows   uint64
	bytes  uint64
	ids    uint64 // sum of the ids of the shard's events
	source uint64 // sequence in EVENTS of the last frame's message, and its era; only as read
	era    uint32
}

// shardState is an active shard as this lane knows it.
type shardState struct {
	entry registry.Shard
	tail  tail
}

// full says why the shard must be left before a frame up to the time hi goes in, or "". An empty
// shard is never full. top is the latest time that it has.
//
// A span divides time from 1970 on, and a shard is left for the first event of a later one. Late events
// go where the lane is: left for those too, a lane whose events come out of order would begin a shard
// with each of its batches.
func full(r schemas.Rotation, s *shardState, top, hi int64) string {
	switch t := s.tail; {
	case t.pos == 0:
		return ""
	case r.Rows > 0 && t.rows >= r.Rows:
		return "rows"
	case r.Bytes > 0 && t.bytes >= r.Bytes:
		return "bytes"
	case r.Span > 0 && hi/int64(r.Span) > top/int64(r.Span):
		return "span"
	}
	return ""
}

// batch is an atomic batch being filled: open for frames and dead letters until
// seal adds the checkpoint.
type batch struct {
	msgs    []*nats.Msg
	bytes   int
	touched map[schemas.Shard]*touched
	given   []schemas.GivenPart // parts of keyed requests
}

// touched is what the batch does to one shard.
type touched struct {
	state  *shardState
	lo, hi int64 // range of the frames added, unix ns
	last   int   // index of the shard's last message in the batch
}

func newBatch() *batch { return &batch{touched: map[schemas.Shard]*touched{}} }

// frame numbers a frame at the shard's tail and adds it. m is the message that it came
// from, the last one where it came from a run that begins at sequence first. The first message of a
// shard carries the expectation that the tail is still where it was.
func (b *batch) frame(s *shardState, f routedFrame, m *message, first uint64, era uint32) {
	next := tail{
		pos: s.tail.pos + 1, seq: s.tail.seq, digest: schemas.Digest(f.payload),
		rows: s.tail.rows + uint64(f.Rows), bytes: s.tail.bytes + uint64(len(f.payload)),
		ids: s.tail.ids + f.ids,
	}
	msg := nats.NewMsg(s.entry.Ref().Subject())
	placed := schemas.Placed{
		Frame: f.Frame, Pos: next.pos, SourceFirst: first, SourceSeq: m.seq, SourceTime: m.stored.UnixNano(), SourceEra: era,
		Prev: s.tail.digest, ShardRows: next.rows, ShardBytes: next.bytes, ShardIDs: next.ids,
	}
	placed.SetHeaders(msg.Header)
	msg.Data = f.payload
	t := b.touched[s.entry.ID]
	if t == nil {
		t = &touched{state: s, lo: f.MinTs, hi: f.MaxTs}
		b.touched[s.entry.ID] = t
		msg.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(s.tail.seq, 10))
	}
	t.lo, t.hi, t.last = min(t.lo, f.MinTs), max(t.hi, f.MaxTs), len(b.msgs)
	s.tail = next
	b.add(msg)
}

// dead adds a dead letter: the payload whole, the message's own Almanac headers,
// and why. Headers that JetStream would act
// on stay behind, and those that are the router's to set.
func (b *batch) dead(subject string, m *message, d deadLetter, reason string) {
	msg := nats.NewMsg(subject)
	msg.Header = schemas.WithoutRouters(streams.CopyHeaders(m.header))
	if d.frame != nil {
		d.frame.SetHeaders(msg.Header)
	}
	msg.Header.Set(schemas.HeaderRows, strconv.Itoa(d.events))
	msg.Header.Set(schemas.HeaderReason, reason)
	msg.Header.Set(schemas.HeaderDetail, headerText(d.err.Error()))
	msg.Header.Set(schemas.HeaderSourceSeq, strconv.FormatUint(m.seq, 10))
	msg.Header.Set(schemas.HeaderSourceTime, strconv.FormatInt(m.stored.UnixNano(), 10))
	msg.Header.Set(schemas.HeaderSourceSubject, m.subject)
	if d.rules != "" {
		msg.Header.Set(schemas.HeaderRules, d.rules)
	}
	if len(d.lines) > 0 {
		msg.Header.Set(schemas.HeaderLine, lineList(d.lines))
	}
	msg.Data = d.payload
	b.add(msg)
}

func (b *batch) add(msg *nats.Msg) {
	b.msgs = append(b.msgs, msg)
	b.bytes += len(msg.Data)
}

// headerText makes an error fit for a header: one line, bounded.
func headerText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
	return s[:min(len(s), maxDetailBytes)]
}

// maxDetailBytes bounds the error's text in a dead letter's header.
const maxDetailBytes = 1024

// lineList is line numbers for people, cut where it gets long.
func lineList(lines []int) string {
	var b strings.Builder
	for i, n := range lines {
		if i == maxListedLines {
			b.WriteString(",…")
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// maxListedLines is how many refused lines a dead letter names.
const maxListedLines = 50
