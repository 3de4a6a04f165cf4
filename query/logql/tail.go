package logql

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/query"
)

// TailRequest asks for lines as their events are routed.
type TailRequest struct {
	Pipeline *Pipeline
	// Since is from when on the newest Limit lines that there are come first. Limit is 1 to MaxLines.
	Since time.Time
	Limit int
	// Delay is how long a line is held after its own time, so that lines that come late are in their place.
	Delay time.Duration
}

// Tail follows lines. It has the lines before, once, and is read once.
type Tail struct {
	r      *query.Reader
	topics []followed
	end    query.TailEnd // of the streams, before the lines before were read
	before []*Entry
	bytes  int64           // that are taken for the lines before
	seen   map[string]bool // lines before that were accepted after that
	queue  *tailQueue
}

// followed is a topic that a tail follows.
type followed struct {
	fields *topicFields
	selection
}

// TailBatch is what a reader of a tail gets at once, in the order of times. Lines of one time are in one batch, where they came together.
type TailBatch struct {
	Entries []*Entry
	// Dropped are lines that were left out before, since the reader was too slow for them: MaxDropped at the most.
	Dropped []Dropped
}

// Dropped is a line that was left out.
type Dropped struct {
	Labels map[string]string
	Ts     int64
}

// OpenTail prepares a tail, and reads the lines before. The end of the streams is noted first. What was accepted up to there is read, or
// left out since it is older than what was asked for, and is not followed, though much of it may not be routed yet. What is accepted
// later is followed, and comes once, by its id, where it was read too.
func (e *Engine) OpenTail(ctx context.Context, s Scope, req *TailRequest) (*Tail, error) {
	topics, err := e.topics(ctx, s, req.Pipeline.Matchers)
	if err != nil {
		return nil, err
	}
	t := &Tail{r: e.r, queue: newTailQueue(req.Delay), seen: map[string]bool{}}
	if t.end, err = e.r.TailEnd(ctx); err != nil {
		return nil, err
	}
	for i := range topics {
		f, err := e.fields(ctx, &topics[i], req.Since, time.Time{}, req.Pipeline.names())
		if err != nil {
			return nil, err
		}
		if one := req.Pipeline.selection(f); !one.none {
			t.topics = append(t.topics, followed{f, one})
		}
	}
	account := budget.Of(ctx)
	held := account.Held()
	t.before, _, err = e.Lines(ctx, s, &LinesRequest{Pipeline: req.Pipeline, From: req.Since, Limit: req.Limit})
	if err != nil {
		return nil, err
	}
	t.bytes = account.Held() - held
	slices.Reverse(t.before) // the oldest first
	for _, entry := range t.before {
		t.seen[entry.key()] = true
	}
	return t, account.Take(maxTailBytes)
}

// Topics is how many topics the tail follows.
func (t *Tail) Topics() int { return len(t.topics) }

// Run calls f with lines until ctx ends or f returns an error.
func (t *Tail) Run(ctx context.Context, f func(TailBatch) error) error {
	g, ctx := fanout.WithContext(ctx)
	begun := make(chan struct{})
	g.Go(func() error {
		for _, entry := range t.before {
			if err := t.queue.put(ctx, entry); err != nil {
				return err
			}
		}
		t.before = nil
		budget.Of(ctx).Free(t.bytes)
		close(begun)
		return nil
	})
	for i := range t.topics {
		g.Go(func() error {
			select {
			case <-begun:
				return t.follow(ctx, &t.topics[i])
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	g.Go(func() error {
		for {
			batch, err := t.queue.take(ctx)
			if err == nil {
				err = f(batch)
			}
			if err != nil {
				return err
			}
		}
	})
	return g.Wait()
}

// follow puts the lines of a topic into the queue as they are routed.
func (t *Tail) follow(ctx context.Context, one *followed) error {
	rest := &Pipeline{Stages: one.rest}
	req := query.TailRequest{Topic: one.fields.topic.Name, Where: one.where, From: t.end.Pos, Skip: t.end.Has}
	return t.r.Tail(ctx, req, func(_ string, event json.RawMessage) error {
		entry, err := one.fields.entry(event)
		if err != nil {
			return err
		}
		if t.seen[entry.key()] {
			return nil
		}
		if kept, err := rest.Apply(ctx, entry); err != nil || !kept {
			return err
		}
		return t.queue.put(ctx, entry)
	})
}

// key names the event of an entry.
func (e *Entry) key() string { return e.topic + "/" + e.id }
