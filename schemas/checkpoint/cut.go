package checkpoint

import (
	"cmp"
	"fmt"
	"github.com/almanac-events/almanac/schemas"
	"slices"
)

// A stream that loses its end gives its sequences again. JetStream does so after a
// restart that meets a damaged message: it cuts the stream there. So a message of
// EVENTS is known by its sequence, by when it was stored, and by its digest; and a
// lane's checkpoint, whose message is gone or is another one, does not fit. What
// follows from that is decided here, without I/O, for routers, verify and repair
// alike: none of them passes what another refuses.

// SourceAt is what EVENTS says about where a checkpoint stands.
type SourceAt struct {
	LastSeq uint64 // of the stream
	Found   bool   // it holds a message at the checkpoint's Anchor
	Stored  int64  // unix ns when that message was stored
	Digest  string // SourceDigest of it
	// Between: it holds a message of the lane above the Anchor and up to Source, where
	// there was none that could be read.
	Between bool
}

// Misfit says why EVENTS is not the stream that the checkpoint saw, or "".
func (c *Checkpoint) Misfit(s SourceAt) string {
	switch anchor := c.Anchor(); {
	case c.Source == 0:
		return ""
	case s.LastSeq < c.Source:
		return fmt.Sprintf("%s ends at message %d, the checkpoint is at %d", c.Stream(), s.LastSeq, c.Source)
	case !s.Found && c.Digest == "":
		return "" // taken out once it was routed
	case !s.Found:
		return fmt.Sprintf("%s does not hold message %d, which the checkpoint names and nothing purges", c.Stream(), anchor)
	case c.another(s):
		return fmt.Sprintf("message %d of %s is not the one that the checkpoint names", anchor, c.Stream())
	case s.Between:
		return fmt.Sprintf("%s holds messages between %d and %d, where none could be read", c.Stream(), anchor, c.Source)
	}
	return ""
}

// another reports whether EVENTS has another message than the checkpoint names.
func (c *Checkpoint) another(s SourceAt) bool {
	return s.Found && (c.Digest != "" && s.Digest != c.Digest || c.Stored != 0 && s.Stored != c.Stored)
}

// GivenAgain reports whether EVENTS gave sequences up to Source again: it ends below,
// or has another message where the checkpoint is, or one below it that is younger. A
// checkpoint whose message is only gone proves nothing: then SHARDS may be what was
// restored from an older copy. older are messages of EVENTS up to Source.
func (c *Checkpoint) GivenAgain(s SourceAt, older []EventsMessage) bool {
	if s.LastSeq < c.Source || c.another(s) {
		return true
	}
	return c.Stored != 0 && slices.ContainsFunc(older, func(m EventsMessage) bool { return m.Seq <= c.Source && m.Stored > c.Stored })
}

// EventsMessage is a message of EVENTS by its headers.
type EventsMessage struct {
	Seq    uint64
	Stored int64          // unix ns
	Frame  *schemas.Frame // nil: bare JSON, or none that can be read
	Blank  bool
}

// Trace is what a message of EVENTS left in SHARDS: a frame or a dead letter, or the
// checkpoint's note that it left none.
type Trace struct {
	Seq      uint64
	Stored   int64 // unix ns when EVENTS stored the message; 0: it does not say
	At       int64 // unix ns when SHARDS stored the trace
	Producer string
	FrameSeq uint64
}

// of reports whether a message left the trace. One that does not say when its
// message was stored is told by the frame's number, and for bare JSON by time: the
// message was there before its trace.
func (t *Trace) of(m *EventsMessage) bool {
	switch {
	case t.Seq != m.Seq:
		return false
	case t.Stored != 0:
		return t.Stored == m.Stored
	case m.Frame != nil && m.Frame.Producer != "" && t.Producer != "":
		return t.Producer == m.Frame.Producer && t.FrameSeq == m.Frame.Seq
	}
	return m.Stored <= t.At
}

// Traces are those of some messages, by sequence.
type Traces map[uint64][]Trace

// Add adds one.
func (ts Traces) Add(t Trace) { ts[t.Seq] = append(ts[t.Seq], t) }

func (ts Traces) of(m *EventsMessage) bool {
	return slices.ContainsFunc(ts[m.Seq], func(t Trace) bool { return t.of(m) })
}

// Resume decides where a lane goes on after EVENTS lost its end: behind message
// after, the last that was routed and is still there, 0 for none. What was cut off
// is one run up to the stream's old end, so all of the lane up to there was routed,
// and all above is new. lane are the lane's messages in order.
//
// doubt are messages above after that may have been routed before the cut all the
// same: they are as old as the checkpoint and left no trace, and no window tells.
// There are none but where retention or an erasure took the trace, or the server's
// clock stepped back: a router does not go on then.
func (c *Checkpoint) Resume(lane []EventsMessage, traces Traces) (after uint64, doubt []EventsMessage) {
	for i := range lane {
		if m := &lane[i]; m.Seq <= c.Source && traces.of(m) {
			after = max(after, m.Seq)
		}
	}
	for i := range lane {
		m := &lane[i]
		known := m.Blank || m.Frame != nil && Windows(c.Windows).Check(*m.Frame) == Repeated
		if m.Seq > after && m.Seq <= c.Source && !known && (c.Stored == 0 || m.Stored <= c.Stored) {
			doubt = append(doubt, *m)
		}
	}
	return after, doubt
}

// Cut is what is known of one loss of the end of EVENTS.
type Cut struct {
	// After is the last message that stayed, To the last sequence of which a
	// checkpoint knew that it had been given.
	After uint64 `json:"after"`
	To    uint64 `json:"to"`
	// Found is when a router or a repair met it, unix ns.
	Found int64 `json:"found"`
	// Both: SHARDS lost its end too, and the lane was routed up to To. What is gone of that
	// is told by the checkpoint's Lost.
	Both bool `json:"both,omitempty"`
	// Lost are the sequences between the two whose messages had not been routed: they
	// were accepted and are gone, unless their producers sent them again. At most
	// MaxLost runs; Messages is how many they are, in all runs.
	Lost     []SeqSpan `json:"lost,omitempty"`
	Messages uint64    `json:"messages,omitempty"`
}

// SeqSpan is a run of sequences, both ends inclusive.
type SeqSpan struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

func (s SeqSpan) len() uint64 { return s.To - s.From + 1 }

// maxCutRange bounds the sequences that are looked at one by one: an hour of frames
// at full load.
const maxCutRange = 5_000_000

// MaxCuts and MaxLost bound what a checkpoint says of cuts: some 2 KiB.
const (
	MaxCuts = 8
	MaxLost = 8
)

// CutOf says what a cut took: the sequences above the last message that stayed and
// up to Source that were given before the cut, and have neither a trace nor their
// message any more. present are the messages of EVENTS from every lane, in order.
//
// Messages up to purged are settled: what they left may be gone since.
func (c *Checkpoint) CutOf(present []EventsMessage, traces Traces, purged uint64, now int64) Cut {
	cut := Cut{To: c.Source, Found: now}
	old := map[uint64]bool{} // still there, and not from after the cut
	for i := range present {
		m := &present[i]
		if m.Seq <= c.Source && (c.Stored != 0 && m.Stored <= c.Stored || c.Stored == 0 && traces.of(m)) { // other lanes may be routed already
			old[m.Seq] = true
			cut.After = max(cut.After, m.Seq)
		}
	}
	before := func(t Trace) bool { return c.Stored == 0 || t.Stored == 0 || t.Stored <= c.Stored }
	from := cut.After + 1
	if cut.After == 0 { // nothing stayed: what left no trace was settled long ago, or is not known of
		from = cut.To + 1
		if purged > 0 {
			from = purged + 1
		}
		for seq := range traces {
			from = min(from, seq)
		}
	}
	var lost []SeqSpan
	for seq := max(from, purged+1, cut.To-min(cut.To, maxCutRange)); seq <= cut.To; seq++ {
		switch n := len(lost); {
		case old[seq] || slices.ContainsFunc(traces[seq], before):
		case n > 0 && lost[n-1].To == seq-1:
			lost[n-1].To = seq
		default:
			lost = append(lost, SeqSpan{seq, seq})
		}
	}
	for _, s := range lost {
		cut.Messages += s.len()
	}
	cut.Lost = lost[:min(len(lost), MaxLost)]
	return cut
}

// Recut is the checkpoint of a lane that goes on after message after, whose digest
// and time are given, in the next era. Windows, counts and tails stay as they are.
func (c Checkpoint) Recut(after uint64, digest string, stored int64, cut Cut) Checkpoint {
	c.Source, c.Digest, c.Stored, c.At = after, digest, stored, 0
	c.Era++
	c.Cuts = append(slices.Clone(c.Cuts[max(0, len(c.Cuts)-MaxCuts+1):]), cut)
	return c
}

// Behind reports whether a frame of the lane came from above the checkpoint:
// SHARDS lost its end between the two.
func (c *Checkpoint) Behind(era uint32, source uint64) bool {
	return cmp.Or(cmp.Compare(era, c.Era), cmp.Compare(source, c.Source)) > 0
}
