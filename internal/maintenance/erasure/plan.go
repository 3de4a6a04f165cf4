package erasure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// Plan is what an erasure would do, as things stand. Nothing was changed.
type Plan struct {
	Topic string   `json:"topic"`
	Users []string `json:"users,omitempty"`
	Where string   `json:"where,omitempty"`
	// Rows of so many shards would go.
	Rows   uint64      `json:"rows"`
	Shards []ShardPlan `json:"shards"`
	// Diffs of sums whose rows retention dropped would go too.
	Diffs uint64 `json:"diffs,omitempty"`
	// Waiting events are accepted and not stored yet: they are not among the rows,
	// and an erasure waits for them.
	Waiting uint64    `json:"waiting"`
	Streams []Holding `json:"streams"`
}

// ShardPlan is what would go from a shard.
type ShardPlan struct {
	Name string `json:"name"`
	Rows uint64 `json:"rows"` // would go
	Of   uint64 `json:"of"`   // that the shard has
	// Diffs of its sums would go, of which retention dropped the rows.
	Diffs uint64 `json:"diffs,omitempty"`
}

// Plan counts what an erasure would take.
func (x *Eraser) Plan(ctx context.Context, req Request) (*Plan, error) {
	e, err := x.compile(ctx, req, time.Now())
	if err != nil {
		return nil, err
	}
	e.Fence = math.MaxUint64 // whenever it was stored
	out, err := x.checkSums(ctx, &e)
	if err != nil {
		return nil, err
	}
	p := &Plan{Topic: e.Topic, Users: e.Users, Where: e.Where, Shards: []ShardPlan{}}
	if p.Waiting, _, err = x.cfg.Reader.WaitStoredUpTo(ctx, []string{e.Topic}, e.UpTo(), nil, 0, nil); err != nil {
		return nil, err
	}
	scopes, found, err := x.counted(ctx, &e, false)
	if err != nil {
		return nil, err
	}
	for id, cuts := range found {
		s := ShardPlan{Name: schemas.PublicShardName(e.Topic, scopes[id].part.Month, id)}
		for _, c := range cuts {
			s.Rows += c.Rows
		}
		if _, s.Of, err = x.cfg.DB.HeadRows(ctx, schemas.ShardRef{Topic: e.Topic, Month: scopes[id].part.Month, ID: id}); err != nil {
			return nil, err
		}
		p.Rows += s.Rows
		p.Shards = append(p.Shards, s)
	}
	summed, err := x.matchingSums(ctx, &e, out.reached)
	if err != nil {
		return nil, err
	}
	for i := range out.reached {
		if s := &out.reached[i]; summed[s.ID] > 0 {
			p.Diffs += summed[s.ID]
			p.Shards = append(p.Shards, ShardPlan{Name: s.Name(), Diffs: summed[s.ID]})
		}
	}
	slices.SortFunc(p.Shards, func(a, b ShardPlan) int { return cmp.Compare(a.Name, b.Name) })
	p.Streams, err = x.holdings(ctx, &e)
	return p, err
}

// Holding is what a stream has that may contain events of an erasure.
type Holding struct {
	Stream string `json:"stream"`
	// Messages whose times overlap the erasure's, from before its fence: whose events
	// match is known only of those that are opened.
	Messages uint64 `json:"messages"`
	// GoneBy is when the janitor has taken the last of them, at the latest; zero when
	// some stay until they are purged.
	GoneBy time.Time `json:"gone_by,omitzero"`
	// Staying are those that no janitor takes: last frames of shards that hold such
	// events, and dead letters.
	Staying uint64 `json:"staying"`
}

// holdings looks for what may contain events of an erasure: the headers of EVENTS, SHARDS and
// the front. The last frames of shards and dead letters are opened.
func (x *Eraser) holdings(ctx context.Context, e *ledger.Erasure) ([]Holding, error) {
	events := Holding{Stream: schemas.StreamEvents}
	_, err := streams.Headers(ctx, x.js, schemas.StreamEvents, schemas.TopicFilter(e.Topic), 1, func(msg *streams.Message) error {
		f, err := schemas.ParseFrame(msg.Header)
		if s := inEvents(msg); !e.Means(s) || err == nil && !e.Covers(s, f.MinTs, f.MaxTs) {
			return nil
		}
		events.Messages++
		events.goneAfter(msg, x.cfg.KeepTime)
		return nil
	})
	if err != nil {
		return nil, err
	}
	held := []Holding{events}
	if e.Front != "" {
		front, err := x.frontHolding(ctx, e)
		if err != nil {
			return nil, err
		}
		held = append(held, front)
	}
	tails, err := streams.Tails(ctx, x.js, e.Topic, nil)
	if err != nil {
		return nil, err
	}
	shards := Holding{Stream: schemas.StreamShards}
	var ends []uint64
	_, err = streams.Headers(ctx, x.js, schemas.StreamShards, schemas.ShardsFilter(e.Topic), 1, func(msg *streams.Message) error {
		// Only routers write here: headers that cannot be read are damage, which verify names. In
		// EVENTS anyone may have written them.
		p, err := schemas.ParsePlaced(msg.Header)
		if err != nil || p.Cleared != "" || !e.Covers(p.Source(), p.MinTs, p.MaxTs) {
			return nil
		}
		if isTail(tails, msg.Subject, msg.Sequence) {
			ends = append(ends, msg.Sequence)
			return nil
		}
		shards.Messages++
		shards.goneAfter(msg, x.cfg.ReplayWindow+x.cfg.ReplayWindow/100)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if shards.Staying, err = x.matchingFrames(ctx, e, ends); err != nil {
		return nil, err
	}
	shards.Messages += shards.Staying
	dead := Holding{Stream: schemas.DeadSubject(e.Topic)}
	topic, err := x.cfg.Registry.Topic(ctx, e.Topic)
	if err != nil {
		return nil, err
	}
	err = x.deadLetters(ctx, e, &topic, func(*streams.Message) error {
		dead.Messages++
		dead.Staying++
		return nil
	})
	return append(held, shards, dead), err
}

// matchingFrames counts, of some messages of SHARDS, those with events of the
// erasure: a shard's last frame stays for good, so it is opened.
func (x *Eraser) matchingFrames(ctx context.Context, e *ledger.Erasure, seqs []uint64) (n uint64, err error) {
	topic, err := x.cfg.Registry.Topic(ctx, e.Topic)
	if err != nil {
		return 0, err
	}
	for _, seq := range seqs {
		msg, err := streams.DecideAt(ctx, x.js, schemas.StreamShards, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // superseded and purged meanwhile
		}
		if err != nil {
			return n, fmt.Errorf("erase: message %d of %s: %w", seq, schemas.StreamShards, err)
		}
		f, err := schemas.ParseFrame(msg.Header)
		if err != nil {
			continue
		}
		m := &matcher{x: x, e: e, topic: &topic}
		if err := errors.Join(m.add(ctx, f, msg.Data), m.flush(ctx)); err != nil {
			return n, err
		}
		if len(m.ids) > 0 {
			n++
		}
	}
	return n, nil
}

// deadLetters calls f with the dead letters from before the fence that may be of
// the erasure: frames with events of its users, others that name one of them, or
// all, when it names none.
// What they hold is not an event, so that a filter cannot evaluate it.
func (x *Eraser) deadLetters(ctx context.Context, e *ledger.Erasure, t *schemas.Topic, f func(*streams.Message) error) error {
	var r frame.Reader
	return streams.Gather(ctx, x.js, schemas.StreamShards, schemas.DeadSubject(e.Topic), 1, nil, func(msg *streams.Message) (bool, error) {
		named := len(e.Users) == 0
		if h, err := schemas.ParseFrame(msg.Header); err == nil && r.Open(msg.Data, t, h.Schema) == nil {
			for i := 0; i < r.Rows() && !named; i++ {
				named = slices.Contains(e.Users, r.Event(i).UserID)
			}
		} else {
			named = named || names(e, msg.Data)
		}
		if !named || !e.Means(schemas.SourceOf(msg.Header)) {
			return true, nil
		}
		return true, f(msg)
	})
}

// goneAfter notes that a message goes so long after it was stored.
func (h *Holding) goneAfter(msg *streams.Message, d time.Duration) {
	if at := msg.Time.Add(d).UTC(); at.After(h.GoneBy) {
		h.GoneBy = at
	}
}

// inEvents is what SHARDS calls a message of EVENTS.
func inEvents(msg *streams.Message) schemas.Source {
	return schemas.Source{Seq: msg.Sequence, Stored: msg.Time.UnixNano()}
}

func isTail(tails map[schemas.Shard]streams.Tail, subject string, seq uint64) bool {
	ref, err := schemas.ParseShardSubject(subject)
	return err == nil && tails[ref.ID].Seq == seq
}
