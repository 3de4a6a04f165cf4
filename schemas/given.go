package schemas

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// A keyed request is sent again under the same key, perhaps by another producer, after the topic changed, or after
// its messages left EVENTS. So a frame of it says which part of which request it is (HeaderPart), and a lane keeps
// the parts that it was given, beside its checkpoint in SHARDS.

// DigestOfRequest names a request in its topic: 96 bits of a digest of its key and its events.
type DigestOfRequest [12]byte

func (d DigestOfRequest) String() string { return hex.EncodeToString(d[:]) }

// Part is what a frame has of a request: of the events that go to the frame's month and lane, in the request's
// order, those from From up to To, without To. It says nothing of the topic: of another cut of the same events
// the parts cover the same numbers.
type Part struct {
	Request  DigestOfRequest
	From, To uint32
}

// String is the part as HeaderPart has it.
func (p Part) String() string { return fmt.Sprintf("%s.%d-%d", p.Request, p.From, p.To) }

// MsgID is the duplicate-window id of the part's frame.
func (p Part) MsgID(m Month, lane int) string {
	return fmt.Sprintf("k.%s.%s.%d.%d-%d", p.Request, m, lane, p.From, p.To)
}

// PartOf reads the part of a request that a message says it is.
func PartOf(h nats.Header) (p Part, ok bool) {
	request, span, dot := strings.Cut(h.Get(HeaderPart), ".")
	from, to, dash := strings.Cut(span, "-")
	if !dot || !dash || len(request) != 2*len(p.Request) {
		return Part{}, false
	}
	if _, err := hex.Decode(p.Request[:], []byte(request)); err != nil {
		return Part{}, false
	}
	lo, err1 := strconv.ParseUint(from, 10, 32)
	hi, err2 := strconv.ParseUint(to, 10, 32)
	p.From, p.To = uint32(lo), uint32(hi)
	return p, err1 == nil && err2 == nil && p.From < p.To
}

// GivenPart is a part that a lane was given, under a month. At is when EVENTS stored its message, unix ns: the message
// itself is not a repetition, when a repair has it routed again, or a reader meets it above an older checkpoint.
type GivenPart struct {
	Month Month
	Part
	At int64
}

// Bounds of what a lane keeps.
const (
	// GivenFor is how long a lane knows a part, by when EVENTS stored the messages: as long as EVENTS knows its
	// message's id, where nothing takes it.
	GivenFor = DedupWindow
	// MaxGiven bounds the parts that a lane goes by, 32 bytes each in SHARDS and some 100 in a router: 430 a second
	// and lane for ten minutes. Beyond it the oldest are forgotten, and EVENTS' ids alone tell a repetition.
	MaxGiven = 1 << 18
	// givenBytes of one in a message.
	givenBytes = 12 + 3*4 + 8
)

// Given are the parts that a lane was given, at most MaxGiven. The zero value is empty.
type Given struct {
	spans map[requestMonth][]span
	queue []GivenPart // oldest first, from head on
	head  int
}

type requestMonth struct {
	request DigestOfRequest
	month   Month
}

// span is events of a request, at is when EVENTS stored them, unix ns.
type span struct {
	from, to uint32
	at       int64
}

// Has reports whether the lane was given all events of a part before, with other messages that are not older than GivenFor.
// A message that the lane took is not a repetition, whatever came after it.
func (g *Given) Has(p GivenPart) bool {
	have := g.spans[requestMonth{p.Request, p.Month}]
	if slices.Contains(have, span{p.From, p.To, p.At}) {
		return false
	}
	for from := p.From; from < p.To; {
		i := slices.IndexFunc(have, func(s span) bool { return s.from <= from && from < s.to && s.at != p.At && p.At-s.at < int64(GivenFor) })
		if i < 0 {
			return false
		}
		from = have[i].to
	}
	return true
}

// Take notes a part, and forgets what is too old by its time.
func (g *Given) Take(p GivenPart) {
	if g.spans == nil {
		g.spans = map[requestMonth][]span{}
	}
	key := requestMonth{p.Request, p.Month}
	g.spans[key] = append(g.spans[key], span{p.From, p.To, p.At})
	g.queue = append(g.queue, p)
	for len(g.queue)-g.head > MaxGiven || p.At-g.queue[g.head].At >= int64(GivenFor) {
		g.forget(&g.queue[g.head])
		g.head++
	}
	if g.head > 1024 && g.head > len(g.queue)/2 {
		g.queue, g.head = slices.Clone(g.queue[g.head:]), 0
	}
}

func (g *Given) forget(old *GivenPart) {
	key := requestMonth{old.Request, old.Month}
	have := g.spans[key]
	if i := slices.Index(have, span{old.From, old.To, old.At}); i >= 0 {
		have = slices.Delete(have, i, i+1)
	}
	if len(have) == 0 {
		delete(g.spans, key)
		return
	}
	g.spans[key] = have
}

// Len returns how many parts there are.
func (g *Given) Len() int { return len(g.queue) - g.head }

// EncodeGiven is the message that keeps parts.
func EncodeGiven(parts []GivenPart) []byte {
	out := make([]byte, 0, len(parts)*givenBytes)
	for i := range parts {
		p := &parts[i]
		out = append(out, p.Request[:]...)
		out = binary.BigEndian.AppendUint32(out, uint32(p.Month))
		out = binary.BigEndian.AppendUint32(out, p.From)
		out = binary.BigEndian.AppendUint32(out, p.To)
		out = binary.BigEndian.AppendUint64(out, uint64(p.At))
	}
	return out
}

// TakeEncoded takes the parts of a message. One that is not of a router is an error.
func (g *Given) TakeEncoded(data []byte) error {
	if len(data)%givenBytes != 0 {
		return fmt.Errorf("%d bytes are not parts of %d bytes", len(data), givenBytes)
	}
	for ; len(data) > 0; data = data[givenBytes:] {
		var p GivenPart
		copy(p.Request[:], data)
		p.Month = Month(binary.BigEndian.Uint32(data[12:]))
		p.From, p.To = binary.BigEndian.Uint32(data[16:]), binary.BigEndian.Uint32(data[20:])
		if p.At = int64(binary.BigEndian.Uint64(data[24:])); p.From < p.To {
			g.Take(p)
		}
	}
	return nil
}
