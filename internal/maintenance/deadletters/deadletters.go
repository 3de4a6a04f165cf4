package deadletters

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// Request says which letters.
type Request struct {
	Topic string
	// Reason and Letter restrict them; empty and zero are all. To drop one letter takes its
	// time too: a number alone may have been given again since it was read.
	Reason string
	Letter schemas.Source
	// Drop drops them; else they are sent again.
	Drop bool
	// DryRun changes nothing.
	DryRun bool
}

// Outcome is what became of one letter.
type Outcome struct {
	// ID names the letter, schemas.Source.Name; Seq is its number alone.
	ID     string `json:"id"`
	Seq    uint64 `json:"seq"`
	Reason string `json:"reason"`
	Events int    `json:"events"`
	// Did is retried, dropped, kept or taken; with DryRun what would be.
	Did string `json:"did"`
	// Why a letter is kept or taken, or which of its events are left out.
	Why string `json:"why,omitempty"`
}

// What became of a letter.
const (
	Retried = "retried"
	Dropped = "dropped"
	Kept    = "kept"
	// Taken is a letter that another process sent again or dropped at the same time, and
	// counted. Sent by both, it arrives once.
	Taken = "taken"
)

// Letters sends dead letters again, or drops them.
type Letters struct {
	reg    *registry.Registry
	js     jetstream.JetStream
	shards jetstream.Stream
	key    []byte
	db     *tables.DB
}

// New returns a Letters. key is that of topics' hash rules, as routers have it;
// without one JSON of such a topic is kept. db tells which events were erased or
// stored before; without one letters of which that must be known are kept.
func New(ctx context.Context, nc *nats.Conn, reg *registry.Registry, key []byte, db *tables.DB) (*Letters, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(ackTime))
	if err != nil {
		return nil, err
	}
	s, err := streams.Open(ctx, js, schemas.StreamShards)
	if err != nil {
		return nil, fmt.Errorf("letters: stream %s: %w", schemas.StreamShards, err)
	}
	return &Letters{reg: reg, js: js, shards: s, key: key, db: db}, nil
}

// ackTime is how long JetStream's answer may take.
const ackTime = 10 * time.Second

// Bounds of the letters dealt with at once; a message has at most 1 MiB.
const (
	batchLetters = registry.MaxOpenLetters
	batchBytes   = 16 << 20
)

// letter is one dead letter.
type letter struct {
	Outcome
	header  nats.Header
	data    []byte
	subject string
	at      time.Time
	left    int // events that are not sent again
}

// Resolve deals with the letters that were there when it began, oldest first, and
// gives f each outcome once it stands.
func (d *Letters) Resolve(ctx context.Context, q Request, f func(Outcome) error) error {
	if q.Drop && !q.DryRun && q.Letter.Seq > 0 && q.Letter.Stored == 0 {
		return fmt.Errorf("%w: to drop letter %d takes the time that it was stored, as `almanac dead ls %s` prints it: %s gives a number again after it lost its end",
			schemas.ErrRequest, q.Letter.Seq, q.Topic, schemas.StreamShards)
	}
	var topic schemas.Topic
	var err error
	if !q.Drop {
		if topic, err = d.reg.Topic(ctx, q.Topic); err != nil {
			if schemas.Reason(err) != "" {
				err = fmt.Errorf("%w: %w", schemas.ErrRequest, err)
			}
			return err
		}
	} else if err := schemas.ValidateTopicName(q.Topic); err != nil && q.Topic != schemas.NoTopic {
		return fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	info, err := streams.Info(ctx, d.js, schemas.StreamShards)
	if err != nil {
		return fmt.Errorf("letters: %s: %w", schemas.StreamShards, err)
	}
	if !q.DryRun {
		if _, err := d.finish(ctx, q.Topic); err != nil {
			return err
		}
	}
	found := false
	for from := max(q.Letter.Seq, 1); from != 0; {
		var batch []letter
		if batch, from, err = d.gather(ctx, q, from, streams.EndOf(info)); err != nil {
			return err
		}
		found = found || len(batch) > 0
		if err := d.resolve(ctx, q, &topic, batch); err != nil {
			return err
		}
		for _, l := range batch {
			if err := f(l.Outcome); err != nil {
				return err
			}
		}
	}
	if q.Letter.Seq > 0 && !found {
		return d.missing(ctx, q)
	}
	return nil
}

// missing says why the one letter that was asked for is not there. A letter of another
// reason than was asked for is left alone.
func (d *Letters) missing(ctx context.Context, q Request) error {
	msg, err := streams.DecideAt(ctx, d.js, schemas.StreamShards, q.Letter.Seq)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("letters: letter %s: %w", q.Letter.Name(), err)
	}
	if err := query.NotLetter(q.Letter, schemas.DeadSubject(q.Topic), msg); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w: %s of topic %q with reason %q; `almanac dead ls %s` lists them", schemas.ErrRequest, query.ErrNoDeadLetter, q.Letter.Name(), q.Topic, q.Reason, q.Topic)
}

// gather reads letters from a sequence up to what SHARDS held when the work began; next is
// where to go on, 0 at the end.
func (d *Letters) gather(ctx context.Context, q Request, from uint64, upTo schemas.Source) (batch []letter, next uint64, err error) {
	size := 0
	err = streams.Gather(ctx, d.js, schemas.StreamShards, schemas.DeadSubject(q.Topic), from, func() int { return batchLetters - len(batch) },
		func(msg *streams.Message) (bool, error) {
			name := schemas.Source{Seq: msg.Sequence, Stored: msg.Time.UnixNano()}
			if msg.Sequence > upTo.Seq || q.Letter.Seq > 0 && msg.Sequence > q.Letter.Seq {
				next = 0
				return false, nil
			}
			next = msg.Sequence + 1
			l := letter{header: msg.Header, data: msg.Data, at: msg.Time, subject: msg.Header.Get(schemas.HeaderSourceSubject)}
			l.ID, l.Seq, l.Reason, l.Events = name.Name(), msg.Sequence, msg.Header.Get(schemas.HeaderReason), schemas.EventsOf(msg.Header)
			if (q.Reason == "" || q.Reason == l.Reason) && (q.Letter.Seq == 0 || q.Letter.Is(name)) && name.UpTo(upTo) {
				batch, size = append(batch, l), size+len(l.data)
			}
			return len(batch) < batchLetters && size < batchBytes, nil
		})
	if len(batch) < batchLetters && size < batchBytes {
		next = 0
	}
	return batch, next, err
}

// resolve deals with one batch.
func (d *Letters) resolve(ctx context.Context, q Request, topic *schemas.Topic, batch []letter) error {
	now := time.Now().UnixNano()
	var erasures ledger.Erasures
	if !q.DryRun { // before anything is sent: a copy would have neither the letter nor what it became
		if err := streams.MayTake(ctx, d.js); err != nil {
			return fmt.Errorf("letters: %w", err)
		}
	}
	if !q.Drop {
		var err error
		if erasures, err = d.reg.Ledger(ctx, q.Topic); err != nil {
			return err
		}
	}
	var open []registry.OpenLetter
	var acks []jetstream.PubAckFuture
	for i := range batch {
		l := &batch[i]
		l.Did = Dropped
		if !q.Drop {
			reopened, err := reopen(topic, l, now, d.key)
			var frames []*outFrame
			if err == nil {
				frames, err = d.leaveOut(ctx, topic, l, reopened, erasures)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				l.Did, l.Why = Kept, err.Error()
				continue
			}
			l.Did = Retried
			for k := range frames {
				if q.DryRun || frames[k] == nil {
					continue
				}
				ack, err := d.js.PublishMsgAsync(frames[k].message(topic.Name, l, k))
				if err != nil {
					return fmt.Errorf("letters: sending letter %d again: %w", l.Seq, err)
				}
				acks = append(acks, ack)
			}
		}
		left := min(l.left, l.Events)
		if left > 0 { // first, so that the letter is overwritten
			open = append(open, registry.OpenLetter{Seq: l.Seq, At: l.at.UnixNano(), Events: uint64(left), Drop: true})
		}
		open = append(open, registry.OpenLetter{Seq: l.Seq, At: l.at.UnixNano(), Events: uint64(l.Events - left), Drop: q.Drop})
	}
	if q.DryRun || len(open) == 0 {
		return nil
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return fmt.Errorf("letters: %s did not take a letter: %w; nothing was dropped, do it again", schemas.StreamEvents, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	taken, err := d.open(ctx, q.Topic, open)
	for i := range batch {
		if l := &batch[i]; l.Did != Kept && taken[l.Seq] {
			l.Did, l.Why = Taken, "another process settled it at the same time"
		}
	}
	return err
}
