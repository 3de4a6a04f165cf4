package query

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Lag is how far a topic's events are behind on their way into ClickHouse.
type Lag struct {
	Topic string `json:"topic"`
	// Unrouted events are accepted, and no router has given them a shard yet.
	Unrouted uint64 `json:"unrouted"`
	// Unstored events are routed and cannot be selected in SQL yet, at most: a shard of
	// which some frames are stored counts by its average frame.
	Unstored uint64 `json:"unstored"`
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
}

// Lag reports what waits of a topic, or of all when topic is empty.
func (r *Reader) Lag(ctx context.Context, topic string) (*LagReport, error) {
	topics, err := r.topics(ctx, topic)
	if err != nil {
		return nil, err
	}
	out := &LagReport{Topics: []Lag{}, Streams: []StreamUse{}}
	var end schemas.Source
	for _, name := range []string{schemas.StreamEvents, schemas.StreamShards} {
		info, err := streams.Info(ctx, r.js, name)
		if err != nil {
			return nil, fmt.Errorf("query: %s: %w", name, err)
		}
		if name == schemas.StreamEvents {
			end = streams.EndOf(info)
		}
		out.Streams = append(out.Streams, StreamUse{name, info.State.Msgs, info.State.Bytes, uint64(max(info.Config.MaxBytes, 0))})
	}
	for _, t := range topics {
		lag := Lag{Topic: t.Name}
		if lag.Unrouted, err = r.unrouted(ctx, []string{t.Name}, end); err != nil {
			return nil, err
		}
		tails, err := streams.Tails(ctx, r.js, t.Name, nil)
		if err != nil {
			return nil, err
		}
		if lag.Unstored, _, err = r.unstored(ctx, slices.Collect(maps.Values(tails))); err != nil {
			return nil, err
		}
		out.Topics = append(out.Topics, lag)
	}
	return out, nil
}
