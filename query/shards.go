package query

import (
	"context"
	"math"
	"time"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// ShardRow is a shard as the registry, its last frame and ClickHouse have it.
type ShardRow struct {
	Name   string          `json:"name"`
	Topic  string          `json:"topic"`
	Month  string          `json:"month"`
	Shard  string          `json:"shard"`
	Lane   int             `json:"lane"`
	Status registry.Status `json:"status"`
	// Rows are those that it has, of all that were routed to it: erasures took Erased, and retention
	// Dropped. Bytes (encoded) and Frames were routed; Stored is the head, of the frames.
	Rows    uint64 `json:"rows"`
	Erased  uint64 `json:"erased"`
	Dropped uint64 `json:"dropped"`
	Bytes   uint64 `json:"bytes"`
	Frames  uint64 `json:"frames"`
	Stored  uint64 `json:"stored"`
	// MinTs and MaxTs cover the shard; exact when it is closed.
	MinTs       time.Time `json:"min_ts"`
	MaxTs       time.Time `json:"max_ts"`
	CreatedAt   time.Time `json:"created_at"`
	LastWriteAt time.Time `json:"last_write_at"`
	// RotatedAt is when its lane went on in another shard of the month, Reason why, and Frames the
	// last that it has.
	RotatedAt time.Time `json:"rotated_at,omitzero"`
	Reason    string    `json:"reason,omitempty"`
	// DroppedAt and DropReason say when and why retention dropped the shard;
	// AnonymisedAt when it last cleared fields in it, Anonymised which.
	DroppedAt    time.Time `json:"dropped_at,omitzero"`
	DropReason   string    `json:"drop_reason,omitempty"`
	AnonymisedAt time.Time `json:"anonymised_at,omitzero"`
	Anonymised   []string  `json:"anonymised,omitempty"`
	// Places are the volumes and disks of ClickHouse that have its rows, and what they take there.
	Places []tables.Place `json:"places,omitempty"`
}

// shardRowBytes is about what a shard takes: its entry, its row and the answer's text.
const shardRowBytes = 1500

// Shards lists the shards of a topic, or of all when topic is empty, in one
// month (YYYY-MM) or in all.
func (r *Reader) Shards(ctx context.Context, topic, month string) ([]ShardRow, error) {
	var m schemas.Month
	var err error
	if month != "" {
		if m, err = schemas.ParseMonth(month); err != nil {
			return nil, joinRequest(err)
		}
	}
	topics, err := r.topics(ctx, topic)
	if err != nil {
		return nil, err
	}
	storage, err := r.db.Storage(ctx)
	if err != nil {
		return nil, err
	}
	var out []ShardRow
	for _, t := range topics {
		entries, err := r.reg.Shards(ctx, t.Name, m)
		if err != nil {
			return nil, err
		}
		tallies, err := r.reg.ErasureRecords(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		heads, err := r.db.Heads(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		places, err := r.db.Places(ctx, storage, t.Name)
		if err != nil {
			return nil, err
		}
		tails, err := streams.Tails(ctx, r.js, t.Name, func(error) {}) // verify names what is odd
		if err != nil {
			return nil, err
		}
		if err := budget.Of(ctx).Take(int64(len(entries)) * shardRowBytes); err != nil {
			return nil, err
		}
		for i, e := range entries {
			row := ShardRow{
				Name: e.Name(), Topic: e.Topic, Month: e.Month.String(), Shard: e.ID.String(), Lane: e.ID.Lane(), Status: e.Status,
				Rows: e.Rows, Bytes: e.Bytes, Stored: e.Head(heads[e.ID]),
				MinTs: time.Unix(0, e.MinTs).UTC(), MaxTs: time.Unix(0, e.MaxTs).UTC(),
				CreatedAt: e.CreatedAt, LastWriteAt: e.LastWriteAt, RotatedAt: rotatedAt(entries, i), Reason: e.Reason,
				DroppedAt: e.DroppedAt, DropReason: e.DropReason, AnonymisedAt: e.AnonymisedAt, Anonymised: e.Anonymised, Places: places[e.ID],
			}
			record := tallies[e.ID]
			_, row.Erased = record.GoneUpTo(math.MaxUint64) // or is under way
			if last, ok := tails[e.ID]; ok {                // else the entry's rows, which an erasure corrects
				row.Rows, row.Bytes, row.Frames = last.ShardRows-min(last.ShardRows, row.Erased), last.ShardBytes, last.Pos
			}
			if e.Gone() {
				row.Dropped, row.Rows = e.DroppedRows, 0
			}
			out = append(out, row)
		}
	}
	return out, nil
}

// rotatedAt is when the lane of a shard went on in the next of the month; zero: it did not. The entries
// are in the order of registry.Compare.
func rotatedAt(entries []registry.Shard, i int) time.Time {
	s := &entries[i]
	for j := i + 1; j < len(entries) && entries[j].Month == s.Month; j++ {
		if o := &entries[j]; o.SameLane(s) {
			return o.CreatedAt
		}
	}
	return time.Time{}
}

// topics are the named topic, or all.
func (r *Reader) topics(ctx context.Context, name string) ([]schemas.Topic, error) {
	if name == "" {
		return r.reg.Topics(ctx)
	}
	t, err := r.topic(ctx, name)
	return []schemas.Topic{t}, err
}
