package producer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// cutRules is a part of every keyed message id. Raise it with any change of how a
// keyed batch is cut into frames, so that frames of two cuts never answer for each
// other.
const cutRules = "almanac keyed batch 1"

// keyedBytes of the digest are in a message id: 96 bits.
const keyedBytes = 12

// submitKeyed cuts the batch into frames, the same ones each time, and hands them
// over one after the other.
func (b *Batch) submitKeyed(ctx context.Context) error {
	if b.p.cfg.Policy == Spool {
		return b.refuse(fmt.Errorf("%w: the policy %s does not keep them", ErrKey, Spool))
	}
	id := b.digest()
	for left := b.placed(id); len(left) > 0; {
		group := left[:samePlace(left)]
		left = left[len(group):]
		for n := 1; len(group) > 0; n++ {
			f, rows, err := b.fill(ctx, group)
			if err != nil {
				return b.refuse(err)
			}
			f.msgID = fmt.Sprintf("k.%s.%s.%d.%d", id, f.month, group[0].lane, n)
			if !b.p.enqueue(b.p.lanes[group[0].lane], f) {
				return b.refuse(ErrClosed)
			}
			b.taken.Add(int64(rows))
			b.frames++
			group = group[rows:]
		}
	}
	return nil
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
// the next try may come by another producer.
func (b *Batch) placed(id string) []place {
	places := make([]place, len(b.rows))
	for i := range b.rows {
		r := &b.rows[i]
		places[i] = place{schemas.MonthOf(r.ts), schemas.LaneOf(&b.p.topic, &r.ev, id), i}
	}
	slices.SortFunc(places, func(x, y place) int {
		return cmp.Or(cmp.Compare(x.month, y.month), cmp.Compare(x.lane, y.lane), cmp.Compare(x.row, y.row))
	})
	return places
}

// fill makes a closed frame of the first events of a group: as many as fit.
func (b *Batch) fill(ctx context.Context, group []place) (f *laneFrame, rows int, err error) {
	now := time.Now()
	f = &laneFrame{month: group[0].month, from: group[0].month.Start(), to: group[0].month.End(), opened: now, lingers: 1, awaited: true, keyed: b}
	var ok bool
	if f.builder, ok = b.p.builders.get(); !ok {
		f.builder = frame.NewBuilder(&b.p.topic)
	}
	for _, at := range group {
		r := &b.rows[at.row]
		if f.events > 0 && f.builder.MaxBytes(r.worst) > b.p.frameBytes {
			break
		}
		if err := b.p.room(ctx, r.size); err != nil {
			b.p.buffer.release(f.events, f.charge)
			f.builder.Reset()
			b.p.builders.put(f.builder)
			return nil, 0, err
		}
		id := r.ev.ID
		if id.IsZero() {
			id = b.p.ids.Next(r.now)
		}
		f.builder.Append(&r.ev, r.ts, id)
		f.events++
		f.charge += r.size
		if f.builder.Full() {
			break
		}
	}
	f.waiters = append(f.waiters, b.waits.add(f.events))
	return f, f.events, nil
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

// digest is what the message ids of the batch begin with: of the key, of the events,
// and of everything that decides where they are cut. Another batch under the same key
// has another one, so that it is stored, and not taken for the first.
func (b *Batch) digest() string {
	h := sha256.New()
	d := digester{h: h}
	d.text(cutRules)
	d.text(b.key)
	d.text(b.p.topic.Name)
	d.number(int64(b.p.topic.Version))
	d.number(int64(b.p.topic.Lanes))
	for _, f := range b.p.topic.LaneBy {
		d.text(f)
	}
	d.number(int64(b.p.frameBytes))
	for i := range b.rows {
		d.event(&b.rows[i])
	}
	d.flush()
	return hex.EncodeToString(h.Sum(nil)[:keyedBytes])
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

func (d *digester) flush() {
	d.h.Write(d.buf) // a hash does not fail
	d.buf = d.buf[:0]
}

func (d *digester) number(n int64) { d.buf = appendNumber(d.buf, n) }
func (d *digester) text(s string)  { d.buf = appendSized(d.buf, s) }

func appendNumber(buf []byte, n int64) []byte { return binary.BigEndian.AppendUint64(buf, uint64(n)) }

func appendSized[T string | []byte](buf []byte, s T) []byte {
	buf = append(strconv.AppendInt(buf, int64(len(s)), 10), ':')
	return append(buf, s...)
}

func (d *digester) event(r *batched) {
	ev, buf := &r.ev, appendNumber(d.buf, r.ts) // a local one: the field would be written for each text
	for _, s := range [...]string{ev.Level, ev.Service, ev.Type, ev.UserID, ev.TraceID, ev.SpanID, ev.Message} {
		buf = appendSized(buf, s)
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
	if d.buf = buf; len(buf) >= digestPiece {
		d.flush()
	}
}
