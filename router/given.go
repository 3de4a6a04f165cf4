package router

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A keyed request that is sent again comes by another producer, so the windows do not know its frames. EVENTS
// knows them by their ids, until NATS starts again: then it knows those alone whose messages are there, and an erasure
// or the janitor may have taken them. So a lane keeps which parts of keyed requests it was given, in
// messages of SHARDS that are committed with the frames. The janitor takes out what no message that is still to
// be routed can repeat, by schemas.GivenFor and the checkpoint: a router may be behind for longer than that.

// loadGiven reads what the lane keeps. The lane is fenced: no other router adds to it.
func (l *lane) loadGiven(ctx context.Context) error {
	l.given = &schemas.Given{}
	return streams.Gather(ctx, l.js, schemas.StreamShards, l.givenSubject(), 1, nil, func(m *streams.Message) (bool, error) {
		if err := l.given.TakeEncoded(m.Data); err != nil {
			// Another program's: what is not a part of a request tells nothing.
			l.cfg.Hooks.fault(l.topic, l.token, fmt.Errorf("router: message %d of %s: %w; it is passed over, and kept as a dead letter", m.Sequence, schemas.StreamShards, err))
		}
		return true, nil
	})
}

func (l *lane) givenSubject() string { return schemas.GivenSubject(l.topic, l.token) }

// partOf is the part of a keyed request that a frame says it is.
func (l *lane) partOf(m *message) (p schemas.GivenPart, ok bool) {
	if l.given == nil || l.evaluator.topic == nil || !schemas.HasFrameHeaders(m.header) {
		return p, false
	}
	if p.Part, ok = schemas.PartOf(m.header); !ok {
		return p, false
	}
	var err error
	p.At = m.stored.UnixNano()
	p.Month, _, err = schemas.ParseEventsSubject(m.subject, l.evaluator.topic)
	return p, err == nil
}

// repeats reports whether a message is a part of a keyed request that the lane was given before. The window of its
// producer takes it: it may be sent once more when the part is forgotten.
func (l *lane) repeats(m *message) (out evaluated, ok bool) {
	p, ok := l.partOf(m)
	if !ok || !l.given.Has(p) {
		return out, false
	}
	f, err := schemas.ParseFrame(m.header)
	if err != nil {
		return out, false
	}
	return evaluated{repeated: true, rows: f.Rows, refused: &f}, true
}

// take notes the part of a keyed request that a message is, once its frame, or an intact refused one, is dealt with.
func (b *batch) take(l *lane, m *message, j *evaluated) {
	p, ok := l.partOf(m)
	if !ok || j.repeated || len(j.frames) == 0 && j.refused == nil && !j.isStored {
		return
	}
	l.given.Take(p)
	b.given = append(b.given, p)
}

// keepGiven adds the message that keeps what the batch took.
func (b *batch) keepGiven(subject string) {
	if len(b.given) == 0 {
		return
	}
	msg := nats.NewMsg(subject)
	msg.Data = schemas.EncodeGiven(b.given)
	b.add(msg)
}
