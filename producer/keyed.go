package producer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// cutRules is a part of every digest. Raise it with any change of what a digest is of, or of how
// events are numbered.
const cutRules = "almanac keyed batch 3"

// keyed is what a batch with a key has beside its events. All of it comes from the key and from the events as they were
// given to Add, before the topic's rules: the topic may have changed when the batch is submitted again.
type keyed struct {
	digester
	first schemas.Topic // of the topic's fields those of its first version
}

// keyedEvent is what counts for an event's place in a keyed batch.
type keyedEvent struct {
	lane   int // noKey: the batch's digest decides
	weight int // bytes that it adds to a frame, whatever the topic's version
}

const noKey = -1

func newKeyed(p *Producer, key string) *keyed {
	k := &keyed{digester: digester{h: sha256.New()}, first: p.topic}
	k.first.Fields = p.topic.FieldsAt(1)
	k.text(cutRules)
	k.text(key)
	k.text(p.topic.Name)
	return k
}

// look takes an event as it was given, at its time, into the digest. source, where it is not nil, is what the event
// was read from: what a text becomes may depend on the topic. undo takes it out again, where the event is refused.
func (k *keyed) look(ev *Event, source []byte) (at keyedEvent, undo func()) {
	if len(k.buf) >= digestPiece {
		k.flush()
	}
	mark := len(k.buf)
	k.event(ev, source)
	at = keyedEvent{lane: noKey, weight: ev.Bytes() + rowBytes + attrWeight*len(ev.Attrs)}
	if lane, ok := schemas.LaneByKey(&k.first, ev); ok {
		at.lane = lane
	}
	return at, func() { k.buf = k.buf[:mark] }
}

// attrWeight is what an attribute takes beside its name and text: lengths, keys, the longest text of
// a number, or a decimal in a field of its own.
const attrWeight = 16

// keyedFrameBytes is the weight at which a frame of a keyed batch closes. Encoded it has less than schemas.MaxFrameBytes,
// whatever fields the topic has: a field of an event that does not have it is zeros, which compress.
const keyedFrameBytes = 400 << 10

// submitKeyed cuts the batch into frames, the same ones each time, and hands them
// over one after the other.
func (b *Batch) submitKeyed(ctx context.Context) error {
	if b.p.cfg.Policy == Spool {
		return b.refuse(fmt.Errorf("%w: the policy %s does not keep them", ErrKey, Spool))
	}
	request := b.keyed.sum()
	for left := b.placed(request); len(left) > 0; {
		group := left[:samePlace(left)]
		left = left[len(group):]
		for from := 0; from < len(group); {
			some := group[from : from+b.fits(group[from:])]
			f, err := b.fill(ctx, some)
			if err != nil {
				return b.refuse(err)
			}
			f.part = &schemas.Part{Request: request, From: uint32(from), To: uint32(from + len(some))}
			if !b.p.enqueue(b.p.lanes[some[0].lane], f) {
				return b.refuse(ErrClosed)
			}
			b.taken.Add(int64(len(some)))
			b.frames++
			from += len(some)
		}
	}
	return nil
}

// fits is how many of a group's first events go into one frame, at least one.
func (b *Batch) fits(group []place) int {
	limit, weight := b.p.frameBytes/(schemas.MaxFrameBytes>>10)*(keyedFrameBytes>>10), 0
	var ids frame.IDCounts
	for n, at := range group {
		r := &b.rows[at.row]
		given := b.p.once && !r.ev.ID.IsZero()
		if weight += r.weight; n > 0 && (n == schemas.FrameRows || weight > limit || given && ids.Often(r.ev.ID)) {
			return n
		}
		if given {
			ids.Add(r.ev.ID)
		}
	}
	return len(group)
}

// place is where an event of a keyed batch goes.
type place struct {
	month schemas.Month
	lane  int
	row   int
}

// samePlace is how many of the first go to one place.
func samePlace(places []place) int {
	i := slices.IndexFunc(places, func(p place) bool { return p.month != places[0].month || p.lane != places[0].lane })
	if i < 0 {
		return len(places)
	}
	return i
}

// placed returns the events by month and lane, each group in the batch's order. The
// digest takes the place of the producer's id where an event has no lane key of its own:
// the next try may come by another producer. What has an identity goes where all of that do.
func (b *Batch) placed(request schemas.DigestOfRequest) []place {
	places := make([]place, len(b.rows))
	for i := range b.rows {
		r := &b.rows[i]
		lane := r.lane
		switch {
		case b.p.topic.HasIdentity():
			if b.p.laneByID && r.ev.ID.IsZero() { // the same one with each try
				r.ev.ID = schemas.SequenceID(r.ts, binary.BigEndian.Uint64(request[:]), uint64(i))
			}
			lane = schemas.LaneOf(&b.p.topic, &r.ev, r.ts, "")
		case lane == noKey:
			lane = schemas.NewLaneHash().Add(request.String()).Lane(b.p.topic.Lanes)
		}
		places[i] = place{schemas.MonthOf(r.ts), lane, i}
	}
	slices.SortFunc(places, func(x, y place) int {
		return cmp.Or(cmp.Compare(x.month, y.month), cmp.Compare(x.lane, y.lane), cmp.Compare(x.row, y.row))
	})
	return places
}

// fill makes a closed frame of events of one place.
func (b *Batch) fill(ctx context.Context, some []place) (*laneFrame, error) {
	now, month := time.Now(), some[0].month
	f := &laneFrame{month: month, from: month.Start(), to: month.End(), opened: now, lingers: 1, awaited: true, keyed: b}
	var ok bool
	if f.builder, ok = b.p.builders.get(); !ok {
		f.builder = frame.NewBuilder(&b.p.topic)
	}
	for _, at := range some {
		r := &b.rows[at.row]
		if err := b.p.space(ctx, r.size); err != nil {
			b.p.buffer.release(f.events, f.charge)
			f.builder.Reset()
			b.p.builders.put(f.builder)
			return nil, err
		}
		id := r.ev.ID
		if id.IsZero() {
			id = b.p.ids.Next(r.now)
		}
		f.builder.Append(&r.ev, r.ts, id)
		f.events++
		f.charge += r.size
	}
	f.waiters = append(f.waiters, b.waits.add(f.events))
	return f, nil
}

// enqueue puts a closed frame behind those of its lane and encodes it. It is false,
// and gives the room back, after Close.
func (p *Producer) enqueue(l *lane, f *laneFrame) bool {
	l.lock()
	if l.shutting {
		l.mu.Unlock()
		p.buffer.release(f.events, f.charge)
		f.builder.Reset()
		p.builders.put(f.builder)
		return false
	}
	f.order, f.closed, f.claimed = p.order.Add(1), time.Now(), true
	l.queue = append(l.queue, f)
	p.unencoded.Add(1)
	l.logged += uint64(f.events)
	l.buffered += f.events
	l.mu.Unlock()
	l.encode(f)
	p.sender.wake()
	return true
}

// digester writes texts with their lengths, so that no two batches read alike. It gathers
// what it writes: a hash takes few large pieces in a third of the time.
type digester struct {
	h   hash.Hash
	buf []byte
	num []byte // the text of one number
}

// digestPiece is how many bytes are gathered.
const digestPiece = 4 << 10

// sum is the digest of all that was written.
func (d *digester) sum() (request schemas.DigestOfRequest) {
	d.flush()
	copy(request[:], d.h.Sum(nil))
	return request
}

func (d *digester) flush() {
	d.h.Write(d.buf) // a hash does not fail
	d.buf = d.buf[:0]
}

func (d *digester) text(s string) { d.buf = appendSized(d.buf, s) }

func appendNumber(buf []byte, n int64) []byte { return binary.BigEndian.AppendUint64(buf, uint64(n)) }

func appendSized[T string | []byte](buf []byte, s T) []byte {
	buf = append(strconv.AppendInt(buf, int64(len(s)), 10), ':')
	return append(buf, s...)
}

func (d *digester) event(ev *Event, source []byte) {
	buf := appendNumber(d.buf, ev.Time.UnixNano()) // a local one: the field would be written for each text
	buf = append(buf, ev.ID[:]...)                 // the given one; zeros while none is
	for _, s := range [...]string{ev.Level, ev.Service, ev.Type, ev.UserID, ev.TraceID, ev.SpanID, ev.Message} {
		buf = appendSized(buf, s)
	}
	if source != nil {
		d.buf = appendSized(buf, source)
		return
	}
	buf = appendNumber(buf, int64(len(ev.Attrs)))
	for i := range ev.Attrs {
		a := &ev.Attrs[i]
		buf = appendNumber(appendSized(buf, a.Key), int64(a.Kind()))
		if a.Kind() == schemas.KindString {
			buf = appendSized(buf, a.Text())
			continue
		}
		d.num = a.AppendText(d.num[:0])
		buf = appendSized(buf, d.num)
	}
	d.buf = buf
}
