package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Lag is how far a topic's events are behind on their way into ClickHouse.
type Lag struct {
	Topic string `json:"topic"`
	// Unrouted events are accepted, and no router has given them a shard yet; the first of them waits for so long. Their bytes are those
	// of the messages that have them.
	Unrouted        uint64  `json:"unrouted"`
	UnroutedBytes   uint64  `json:"unrouted_bytes"`
	UnroutedSeconds float64 `json:"unrouted_seconds"`
	// Unstored events are routed and cannot be selected in SQL yet, at most: a shard of
	// which some frames are stored counts by its average frame. So do the bytes of their frames. Nil while ClickHouse is away and this process has not
	// known what it has; what it had when it was last asked counts, as nothing is stored meanwhile.
	Unstored        *uint64  `json:"unstored,omitempty"`
	UnstoredBytes   *uint64  `json:"unstored_bytes,omitempty"`
	UnstoredSeconds *float64 `json:"unstored_seconds,omitempty"`
}

// StreamUse is how full a stream is.
type StreamUse struct {
	Stream   string `json:"stream"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	// Limit is what the stream may hold, in bytes; 0 is unlimited.
	Limit uint64 `json:"limit_bytes"`
}

// LagReport is what waits, by topic, and the streams in which it waits.
type LagReport struct {
	Topics  []Lag       `json:"topics"`
	Streams []StreamUse `json:"streams"`
	// At is when this was so: earlier than now while NATS is away.
	At time.Time `json:"at"`
	// Away are the servers that do not answer.
	Away []Away `json:"away"`
}

// known is what a reader remembers for answers while servers are away.
type known struct {
	mu    sync.Mutex
	heads map[string]map[schemas.Shard]uint64 // of topics, as ClickHouse last said
	waits map[schemas.ShardRef]waiting
	last  map[string]*LagReport // by topic, "" for all

	state   *State
	stateAt time.Time
	servers Versions
	disks   []DiskUse
	disksAt time.Time
}

// waiting is a frame that was not stored when it was looked at.
type waiting struct {
	pos   uint64
	since time.Time
}

// maxLast bounds the reports that are remembered.
const maxLast = 256

// Lag reports what waits of a topic, or of all when topic is empty. While a server is away it says so within two seconds,
// with what is known without it. An error is one of the request, or that nothing is known.
func (r *Reader) Lag(ctx context.Context, topic string) (*LagReport, error) {
	asked, cancel := r.withServer(ctx, ServerNATS)
	defer cancel()
	out, err := r.lag(asked, topic)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	if err == nil {
		if len(r.known.last) >= maxLast {
			clear(r.known.last)
		}
		r.known.last[topic] = out
	} else {
		last := r.known.last[topic]
		if !ofServer(err) || last == nil && len(r.servers.list()) == 0 {
			return nil, err
		}
		r.servers.found(ServerNATS, err, time.Now())
		out = &LagReport{Topics: []Lag{}, Streams: []StreamUse{}}
		if last != nil {
			*out = *last
		}
	}
	answer := *out
	answer.Away = r.servers.list()
	return &answer, nil
}

// lag reads what NATS has. What ClickHouse has is read beside it, and is what it was where it is away.
func (r *Reader) lag(ctx context.Context, topic string) (*LagReport, error) {
	topics, err := r.topics(ctx, topic)
	if err != nil {
		return nil, err
	}
	heads := make(chan error, 1)
	go func() { heads <- r.readHeads(ctx, topics) }()
	out := &LagReport{Topics: []Lag{}, Streams: []StreamUse{}, At: time.Now().UTC().Truncate(time.Millisecond)}
	var end schemas.Source
	for _, name := range []string{schemas.StreamEvents, schemas.StreamShards} {
		info, err := streams.Info(ctx, r.js, name)
		if err != nil {
			return nil, fmt.Errorf("query: %s: %w", name, err)
		}
		if name == schemas.StreamEvents {
			end = streams.EndOf(info)
		}
		out.Streams = append(out.Streams, useOf(name, info))
	}
	for i := range topics {
		lag := Lag{Topic: topics[i].Name}
		waits, err := r.waitingOf(ctx, topics[i].Name, end)
		if err != nil {
			return nil, err
		}
		lag.Unrouted, lag.UnroutedBytes, lag.UnroutedSeconds = waits.Events, waits.Bytes, age(waits.First, out.At)
		out.Topics = append(out.Topics, lag)
	}
	if err := <-heads; err != nil {
		if !ofServer(err) || ctx.Err() != nil {
			return nil, err
		}
		if !errors.As(err, new(foundAway)) && r.here(ctx, ServerClickHouse) == nil { // it answers, and refuses this
			r.servers.found(ServerClickHouse, fmt.Errorf("ClickHouse at %s does not say what is stored: %w", r.db.Address(), err), time.Now())
		}
	}
	for i := range out.Topics {
		if err := r.lagStored(ctx, &out.Topics[i], out.At); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readHeads asks ClickHouse what it has of topics. Where it is away, what it said before is kept.
func (r *Reader) readHeads(ctx context.Context, topics []schemas.Topic) error {
	ctx, cancel := r.withServer(ctx, ServerClickHouse)
	defer cancel()
	for i := range topics {
		heads, err := r.db.Heads(ctx, topics[i].Name)
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		r.known.mu.Lock()
		r.known.heads[topics[i].Name] = heads
		r.known.mu.Unlock()
	}
	return nil
}

// lagStored counts what of a topic is routed and not stored.
func (r *Reader) lagStored(ctx context.Context, lag *Lag, now time.Time) error {
	r.known.mu.Lock()
	heads, ok := r.known.heads[lag.Topic]
	r.known.mu.Unlock()
	if !ok {
		return nil
	}
	tails, err := streams.Tails(ctx, r.js, lag.Topic, func(error) {}) // verify names what is odd
	if err != nil {
		return err
	}
	n, bytes, left, err := r.unstoredOf(ctx, slices.Collect(maps.Values(tails)), func(string) (map[schemas.Shard]uint64, error) { return heads, nil }, nil)
	if err != nil {
		return err
	}
	oldest, err := r.oldest(ctx, lag.Topic, left, heads)
	seconds := age(oldest, now)
	lag.Unstored, lag.UnstoredBytes, lag.UnstoredSeconds = &n, &bytes, &seconds
	return err
}

// maxLooks bounds the frames whose times one report reads: each takes some twenty questions.
const maxLooks = 16

// oldest is the time of the first frame that is not stored. It is read once for each time that a shard falls behind; from then
// on it is remembered until that frame is stored. Zero: all are stored. Where more than maxLooks shards fell behind since
// the report before, those that are left are read by the next ones, and until then it is the oldest that is known.
func (r *Reader) oldest(ctx context.Context, topic string, left []streams.Tail, heads map[schemas.Shard]uint64) (oldest time.Time, err error) {
	r.known.mu.Lock()
	maps.DeleteFunc(r.known.waits, func(ref schemas.ShardRef, w waiting) bool {
		return ref.Topic == topic && (heads[ref.ID] >= w.pos || !slices.ContainsFunc(left, func(t streams.Tail) bool { return t.Ref == ref }))
	})
	have := maps.Clone(r.known.waits)
	r.known.mu.Unlock()
	for _, t := range looks(left, have) {
		w := waiting{pos: heads[t.Ref.ID] + 1}
		if w.since, err = r.frameTime(ctx, t, w.pos); err != nil {
			return oldest, err
		}
		have[t.Ref] = w
		r.known.mu.Lock()
		r.known.waits[t.Ref] = w
		r.known.mu.Unlock()
	}
	for _, t := range left {
		if w, ok := have[t.Ref]; ok && (oldest.IsZero() || w.since.Before(oldest)) {
			oldest = w.since
		}
	}
	return oldest, nil
}

// looks chooses the shards whose first frame that is not stored is looked at now: of those that are not remembered, the ones that have
// been quiet for longest, whose frames are the oldest where a sink left them.
func looks(left []streams.Tail, have map[schemas.ShardRef]waiting) []streams.Tail {
	unseen := slices.DeleteFunc(slices.Clone(left), func(t streams.Tail) bool {
		_, ok := have[t.Ref]
		return ok
	})
	slices.SortFunc(unseen, func(a, b streams.Tail) int { return cmp.Compare(a.Seq, b.Seq) })
	return unseen[:min(len(unseen), maxLooks)]
}

// frameTime is when the first frame of a shard from a position on was routed.
func (r *Reader) frameTime(ctx context.Context, t streams.Tail, pos uint64) (time.Time, error) {
	seq, err := streams.FindFrame(ctx, r.js, t.Ref.Subject(), pos, t.Seq)
	if err != nil {
		return time.Time{}, err
	}
	msg, err := streams.DecideNext(ctx, r.js, schemas.StreamShards, t.Ref.Subject(), seq)
	if err != nil {
		return time.Time{}, err
	}
	return msg.Time, nil
}

// age is how long ago a time was; 0 where there is none.
func age(at, now time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(now.Sub(at).Seconds(), 0)
}

// entriesOf are the entries of a topic, by shard.
func entriesOf(all []registry.Shard) map[schemas.Shard]registry.Shard {
	by := make(map[schemas.Shard]registry.Shard, len(all))
	for _, e := range all {
		by[e.ID] = e
	}
	return by
}
