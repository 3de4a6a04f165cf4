package doctor

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// retention looks for shards that should have been dropped or anonymised, and for
// dead letters, which no retention touches, older than what their topic keeps.
func (c *check) retention(ctx context.Context, now time.Time) {
	topics, err := c.reg.Topics(ctx)
	if err != nil {
		return // the check of the registry says so
	}
	ruled, overdue := 0, 0
	var oldest registry.Shard
	var since time.Time
	var step registry.Step
	for i := range topics {
		t := &topics[i]
		if t.KeepDays == 0 && !t.Anonymise.On() {
			continue
		}
		ruled++
		shards, err := c.reg.Shards(ctx, t.Name, 0)
		if err != nil {
			c.result("retention", err, "", "")
			return
		}
		for _, s := range shards {
			if next, at := s.Overdue(t, now); next != registry.Keep {
				if overdue++; since.IsZero() || at.Before(since) {
					oldest, since, step = s, at, next
				}
			}
		}
		c.oldLetters(ctx, t, now)
	}
	if overdue > 0 && step == registry.DropIt {
		if why := c.unsummed(ctx, topics, &oldest); why != "" {
			c.note("retention", Warn, "see that a sink runs: it fills what is derived, and its log says what stops it",
				"%d shards are overdue: %s, due %s, waits for its sums, which stay when its rows are dropped: %s", overdue, oldest.Name(), since.UTC().Format(time.RFC3339), why)
			return
		}
	}
	switch {
	case overdue > 0:
		c.note("retention", Warn, "see that a router and a sink run: the router seals, the sink closes, its janitor drops and clears; their logs say what stops them",
			"%d shards are overdue: %s, which is %s, was due %s", overdue, oldest.Name(), oldest.Status, since.UTC().Format(time.RFC3339))
	case ruled > 0:
		c.note("retention", OK, "", "%d of %d topics have one, nothing is overdue", ruled, len(topics))
	}
}

// unsummed says why a closed shard that is past its retention waits for its sums; empty when
// it does not, or when that cannot be read.
func (c *check) unsummed(ctx context.Context, topics []schemas.Topic, e *registry.Shard) string {
	i := slices.IndexFunc(topics, func(t schemas.Topic) bool { return t.Name == e.Topic })
	if c.db == nil || e.Status != registry.Closed || i < 0 || !topics[i].HasSums() {
		return ""
	}
	d, err := derived.Of(c.db).State(ctx, &topics[i])
	if err != nil {
		return "" // the check of ClickHouse says so
	}
	s := d.Shards[e.Ref()]
	return s.Waits()
}

// oldLetters looks at a topic's first dead letter.
func (c *check) oldLetters(ctx context.Context, t *schemas.Topic, now time.Time) {
	js := c.reg.JetStream()
	stream, err := streams.Open(ctx, js, schemas.StreamShards)
	if err != nil {
		return // the check of the streams says so
	}
	msg, err := streams.Asked(ctx, js.Conn(), func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(schemas.DeadSubject(t.Name)))
	})
	days := t.ShortestDays()
	if err != nil || now.Before(msg.Time.AddDate(0, 0, days)) {
		return
	}
	c.note("dead letters of "+t.Name, Warn, "almanac dead ls "+t.Name+", then almanac dead drop",
		"the first is of %s; the topic's events are dropped or anonymised after %d days, dead letters are not", msg.Time.UTC().Format(time.DateOnly), days)
}
