package router

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
)

const (
	// company is how long the first lane of a group waits for the others, which gather
	// to the same beat (pace.go) and have their frames checked meanwhile.
	company = 10 * time.Millisecond
	// maxAlone bounds the batches under way that are of one lane: a NATS server allows
	// 50 a stream unless it is told otherwise, for all routers together.
	maxAlone = 14
	// maxGroups bounds the groups under way. While they are, the next one fills; two,
	// so that one whose answer was lost does not hold up every lane.
	maxGroups = 2
)

// group commits what the lanes of a router have at hand in one atomic batch. JetStream
// makes and syncs a store of its own for each batch, whatever its size.
//
// Each lane's part keeps its own expectations: of its checkpoint and of the tails of its
// shards. So a group is refused when a single lane lost its race, and then each part is
// sent again by itself, as it was. A part lies in one run of sequences and is never cut.
type group struct {
	js  jetstream.JetStream
	cfg *Config
	// queue bounds the groups under way, alone the parts that go by themselves.
	queue, alone queue
	// bound is the router's own context, which ends at an outage: a lane that stops
	// must not end a batch that is other lanes' too.
	bound func() (context.Context, context.CancelFunc)

	mu   sync.Mutex
	open *round // takes parts; nil: the next part opens one
}

// round is a group being filled. The lane that opened it publishes it.
type round struct {
	parts    []*part
	messages int
	bytes    int
	full     chan struct{} // closed when it takes no more
}

// part is what one lane commits, its checkpoint last.
type part struct {
	msgs  []*nats.Msg
	bytes int

	done chan struct{} // closed once the rest is set
	last uint64        // sequence of the last message
	took time.Duration // by the batch
	err  error
}

func newGroup(js jetstream.JetStream, cfg *Config) *group {
	return &group{js: js, cfg: cfg, queue: make(queue, maxGroups), alone: make(queue, maxAlone)}
}

// commit publishes a lane's messages, the checkpoint last, all or nothing, and returns
// the sequence of the last and how long the batch took. After an error that is not
// JetStream's refusal it is unknown whether they were stored.
func (g *group) commit(ctx context.Context, msgs []*nats.Msg, bytes int) (last uint64, took time.Duration, err error) {
	p := &part{msgs: msgs, bytes: bytes, done: make(chan struct{})}
	if r, leads := g.join(p); leads {
		g.lead(ctx, r)
	}
	select {
	case <-p.done:
		return p.last, p.took, p.err
	case <-ctx.Done():
		return 0, 0, context.Cause(ctx)
	}
}

// join puts a part into the open round, and reports whether its lane must publish the
// round. A part that is worth a batch of its own gets one.
func (g *group) join(p *part) (r *round, leads bool) {
	if p.bytes >= goodBatchBytes {
		return &round{parts: []*part{p}}, true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != nil && !g.open.takes(p, g.cfg.MaxBatchMessages, g.cfg.MaxBatchBytes) {
		close(g.open.full)
		g.open = nil
	}
	if g.open == nil {
		g.open, leads = &round{full: make(chan struct{})}, true
	}
	r = g.open
	r.parts, r.messages, r.bytes = append(r.parts, p), r.messages+len(p.msgs), r.bytes+p.bytes
	return r, leads
}

// takes reports whether a part fits a round that has some. The checkpoints count: a
// group of very many lanes is mostly those.
func (r *round) takes(p *part, maxMessages, maxBytes int) bool {
	return r.messages+len(p.msgs) <= maxMessages && r.bytes+p.bytes <= maxBytes
}

// lead publishes a round once its lanes had time to join it, and a turn is free.
func (g *group) lead(ctx context.Context, r *round) {
	bound, end := g.bound()
	defer end()
	turns := g.alone
	if r.full != nil {
		turns = g.queue
		g.wait(ctx, bound, r)
	}
	err := turns.take(bound)
	g.mu.Lock()
	if g.open == r {
		g.open = nil
	}
	g.mu.Unlock()
	if err != nil {
		r.answer(0, 0, context.Cause(bound))
		return
	}
	defer turns.done()
	g.publish(bound, r)
}

// wait waits for company; a router without a linger and a lane that stops do not.
func (g *group) wait(ctx, bound context.Context, r *round) {
	if g.cfg.Linger <= 0 {
		return
	}
	timer := time.NewTimer(company)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.full:
	case <-ctx.Done():
	case <-bound.Done():
	}
}

// publish publishes a round that takes no more parts, and answers each.
func (g *group) publish(ctx context.Context, r *round) {
	var msgs []*nats.Msg
	for _, p := range r.parts {
		msgs = append(msgs, p.msgs...)
	}
	last, took, err := g.send(ctx, msgs)
	var refusal *jetstream.APIError
	if len(r.parts) == 1 || !errors.As(err, &refusal) {
		g.cfg.Hooks.committed(len(r.parts), len(msgs), err)
		r.answer(last, took, err)
		return
	}
	g.cfg.Crash.at("router.group-refused")
	for i, p := range r.parts {
		if i > 0 {
			g.cfg.Crash.at("router.between-lanes")
		}
		last, took, err := g.send(ctx, p.msgs)
		g.cfg.Hooks.committed(1, len(p.msgs), err)
		p.answer(last, took, err)
	}
}

// answer answers all parts: a batch lies in one run of sequences.
func (r *round) answer(last uint64, took time.Duration, err error) {
	for i := len(r.parts) - 1; i >= 0; i-- {
		p := r.parts[i]
		p.answer(last, took, err)
		last -= uint64(len(p.msgs))
	}
}

func (p *part) answer(last uint64, took time.Duration, err error) {
	p.last, p.took, p.err = last, took, err
	close(p.done)
}

// send publishes messages, all or none.
func (g *group) send(ctx context.Context, msgs []*nats.Msg) (last uint64, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(g.cfg.CommitTimeout, streams.BatchWait(g.js.Conn())))
	defer cancel()
	began := time.Now()
	if last, err = streams.Commit(ctx, g.js, msgs...); err != nil {
		return 0, 0, commitError(err)
	}
	return last, time.Since(began), nil
}
