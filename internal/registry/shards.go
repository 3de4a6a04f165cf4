package registry

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Status is where a shard stands in its life.
type Status string

// The states of a shard, in order.
const (
	Active Status = "active"
	Sealed Status = "sealed"
	Closed Status = "closed"
	// Dropping: past its topic's retention, its events go. Dropped: they are gone.
	Dropping Status = "dropping"
	Dropped  Status = "dropped"
)

// Shard is a shard's entry.
type Shard struct {
	Topic string        `json:"topic"`
	Month schemas.Month `json:"month"`
	ID    schemas.Shard `json:"shard"` // says its lane
	// Order is the shard's place among those of its lane; Ended is where its last frame came from, set
	// when sealed, zero where that is not known.
	Order     Order     `json:"order"`
	Ended     Point     `json:"ended,omitzero"`
	CreatedAt time.Time `json:"created_at"`
	// LastWriteAt, Rows and Bytes are estimates until the shard is closed.
	LastWriteAt time.Time `json:"last_write_at"`
	Rows        uint64    `json:"rows"`
	Bytes       uint64    `json:"bytes"`
	// MinTs and MaxTs (unix ns) cover every event of the shard; exact when closed.
	MinTs  int64  `json:"min_ts"`
	MaxTs  int64  `json:"max_ts"`
	Status Status `json:"status"`
	// LeftAt is the position at which the shard ended when a rotation left it: it is
	// sealed there or above, unless SHARDS lost its end meanwhile. 0: not left, or by
	// retention.
	LeftAt uint64 `json:"left_at,omitempty"`
	// SealedAt is the last position the shard will ever have; set when sealed.
	SealedAt uint64 `json:"sealed_at,omitempty"`
	// Reason is why the shard was rotated away from.
	Reason string `json:"reason,omitempty"`
	// Floor is a head written before rows that carry it may go; see design.
	Floor uint64 `json:"floor,omitempty"`
	// Fork is set once SHARDS and ClickHouse have other frames of the shard.
	Fork *Fork `json:"fork,omitempty"`
	// DroppedAt is when retention marked the shard, DroppedRows how many rows
	// ClickHouse held of it then, DropReason what was past. Set with Dropping.
	DroppedAt   time.Time `json:"dropped_at,omitzero"`
	DroppedRows uint64    `json:"dropped_rows,omitempty"`
	DropReason  string    `json:"drop_reason,omitempty"`
	// AnonymisedAt is when the Anonymised fields were last cleared, in every row and
	// in SHARDS; see schemas.Anonymise for their names.
	AnonymisedAt time.Time `json:"anonymised_at,omitzero"`
	Anonymised   []string  `json:"anonymised,omitempty"`

	rev uint64
	// unwritten is the head entry that the shard is to be written with; see Prepare.
	unwritten *Head
}

// Name is the shard's public name.
func (s *Shard) Name() string { return schemas.PublicShardName(s.Topic, s.Month, s.ID) }

func (s *Shard) key() string { return schemas.ShardKey(s.Topic, s.Month, s.ID) }

// Unchanged reports whether the entry was not written since another reading of it.
func (s *Shard) Unchanged(since *Shard) bool { return s.rev == since.rev }

// Overlaps says whether events between from and to (unix ns, inclusive) may be
// in the shard.
func (s *Shard) Overlaps(from, to int64) bool { return s.MaxTs >= from && s.MinTs <= to }

// Emptied says that no row of a closed shard is left: all of them were stored, as
// its floor states, and erased.
func (s *Shard) Emptied() bool {
	return s.Status == Closed && s.Rows == 0 && s.SealedAt > 0 && s.Floor >= s.SealedAt
}

// Head is a topic-month's head entry.
type Head struct {
	Topic string        `json:"topic"`
	Month schemas.Month `json:"month"`
	// Active is each lane's active shard.
	Active map[int]schemas.Shard `json:"active"`
	// Retired are shards that a rotation, retention or a fork left and no router sealed yet, with
	// the lane of each.
	Retired map[schemas.Shard]int `json:"retired,omitempty"`
	// Youngest has the order of the last shard that each lane made, whatever became of it.
	Youngest map[int]Order `json:"youngest,omitempty"`

	rev uint64
}

func (h *Head) key() string { return schemas.HeadKey(h.Topic, h.Month) }

// Head reads a topic-month's head entry.
func (r *Registry) Head(ctx context.Context, topic string, m schemas.Month) (Head, error) {
	var h Head
	rev, err := r.get(ctx, schemas.HeadKey(topic, m), &h)
	h.rev = rev
	return h, err
}

// Heads reads every month's head entry of a topic, oldest first.
func (r *Registry) Heads(ctx context.Context, topic string) ([]Head, error) {
	heads, err := list[Head](ctx, r, schemas.HeadKeys(topic))
	slices.SortFunc(heads, func(a, b Head) int { return cmp.Compare(a.Month, b.Month) })
	return heads, err
}

// Shard reads a shard's entry.
func (r *Registry) Shard(ctx context.Context, ref schemas.ShardRef) (Shard, error) {
	var s Shard
	rev, err := r.get(ctx, schemas.ShardKey(ref.Topic, ref.Month, ref.ID), &s)
	s.rev = rev
	return s, err
}

// Shards reads the entries of a topic, of one month or of all (m = 0), by month,
// then in the order of Compare.
func (r *Registry) Shards(ctx context.Context, topic string, m schemas.Month) ([]Shard, error) {
	filter := schemas.ShardKeys(topic)
	if m != 0 {
		filter = schemas.MonthShardKeys(topic, m)
	}
	shards, err := list[Shard](ctx, r, filter)
	slices.SortFunc(shards, Compare)
	return shards, err
}

// Rotate makes a new active shard for the lane of s and retires s, with the
// reason. LeftAt, Rows and Bytes of s are what the caller knows of its end. s still
// has to be sealed, once no older router can add to it. When another router rotated
// first, its shard is the answer. from and at are as for Prepare.
func (r *Registry) Rotate(ctx context.Context, s Shard, reason string, from Point, at time.Time) (Shard, error) {
	for {
		h, err := r.Head(ctx, s.Topic, s.Month)
		if err != nil {
			return Shard{}, err
		}
		id, ok := h.Active[s.ID.Lane()]
		if !ok { // retired meanwhile, without a successor
			next, err := r.advance(ctx, h, s.ID.Lane(), from, at)
			if err == nil || !errors.Is(err, ErrConflict) {
				return next, err
			}
			continue
		}
		if id != s.ID {
			return r.Shard(ctx, schemas.ShardRef{Topic: s.Topic, Month: s.Month, ID: id})
		}
		old, err := r.Shard(ctx, s.Ref())
		if err != nil {
			return Shard{}, err
		}
		old.Reason = reason
		old.LeftAt, old.Rows, old.Bytes = max(old.LeftAt, s.LeftAt), max(old.Rows, s.Rows), max(old.Bytes, s.Bytes)
		if h.Retired == nil {
			h.Retired = map[schemas.Shard]int{}
		}
		h.Retired[s.ID] = s.ID.Lane()
		next, err := r.advance(ctx, h, s.ID.Lane(), from, at, &change{key: old.key(), rev: old.rev, v: &old})
		if err == nil || !errors.Is(err, ErrConflict) {
			return next, err
		}
	}
}

// advance gives the lane a new active shard, in one commit with the head entry
// and more.
func (r *Registry) advance(ctx context.Context, h Head, lane int, from Point, at time.Time, more ...*change) (Shard, error) {
	s := h.next(schemas.NewShard(lane), from, at)
	head := s.unwritten
	s.unwritten = nil
	entry := &change{key: s.key(), v: &s}
	err := r.commit(ctx, append(more, entry, &change{key: head.key(), rev: head.rev, v: head})...)
	s.rev = entry.rev
	return s, err
}

// Seal states that no frame of the shard will ever stand above pos, where the last came from message ended.
// Only a router that has fenced every other off the lane may say so.
func (r *Registry) Seal(ctx context.Context, ref schemas.ShardRef, ended Point, pos, rows, bytes uint64) error {
	for {
		h, err := r.Head(ctx, ref.Topic, ref.Month)
		if err != nil {
			return err
		}
		s, err := r.Shard(ctx, ref)
		if err != nil {
			return err
		}
		if _, retired := h.Retired[ref.ID]; !retired || s.Status != Active {
			return nil
		}
		s.Status, s.Ended, s.SealedAt, s.Rows, s.Bytes = Sealed, ended, pos, rows, bytes
		delete(h.Retired, ref.ID)
		err = r.commit(ctx, &change{key: s.key(), rev: s.rev, v: &s}, &change{key: h.key(), rev: h.rev, v: &h})
		if err == nil || !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// Close states that the sealed shard is stored whole, with its exact numbers,
// which were counted after its entry s was read. An entry that changed meanwhile
// stays as it is: what changed it, an erasure, may have changed the numbers too.
// The answer says whether the shard is closed.
func (r *Registry) Close(ctx context.Context, s Shard, rows uint64, minTs, maxTs int64) (closed bool, err error) {
	if s.Status != Sealed {
		return s.Status == Closed, nil
	}
	s.Status, s.Rows = Closed, rows
	if rows > 0 {
		s.MinTs, s.MaxTs = minTs, maxTs
	}
	err = r.commit(ctx, &change{key: s.key(), rev: s.rev, v: &s})
	if errors.Is(err, ErrConflict) {
		return false, nil
	}
	return err == nil, err
}
