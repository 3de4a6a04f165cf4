package registry

import (
	"context"
	"errors"
	"maps"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// Fork is what is known of a shard of which SHARDS and ClickHouse have other frames at the
// same positions: SHARDS was restored from an older copy, and its positions were given again.
// Nothing is added to such a shard. What ClickHouse has stays, and the frames that it lacks
// go to another shard (package sinks, fork.go).
type Fork struct {
	// To is the shard that takes the frames which ClickHouse lacks.
	To schemas.Shard `json:"to"`
	// Stored is the last record of a front that the shard has in ClickHouse: its lane goes on
	// behind it. Zero for other lanes, whose frames are moved.
	Stored schemas.Source `json:"stored,omitzero"`
	// LeftHead is the last position that ClickHouse had when the shard left, and again when it was examined, LeftRows its rows with those
	// that erasures took until then. Zero where an older version noted neither. No row is added and erasures alone take some,
	// so less than these says that ClickHouse lost rows since.
	LeftHead uint64 `json:"left_head,omitempty"`
	LeftRows uint64 `json:"left_rows,omitempty"`
	// Examined: what follows was decided, once, when no router could add to the shard any more.
	Examined bool `json:"judged,omitempty"`
	// At is the last position that both have, Head the last that ClickHouse has.
	At   uint64 `json:"at,omitempty"`
	Head uint64 `json:"head,omitempty"`
	// Move are the positions in SHARDS whose frames ClickHouse lacks, of so many Rows.
	Move []ledger.Span `json:"move,omitempty"`
	Rows uint64        `json:"rows,omitempty"`
	// Kept is how many rows ClickHouse has that no checkpoint counts: their frames are gone
	// with what SHARDS was before. It is negative where frames brought rows again.
	Kept int64 `json:"kept,omitempty"`
	// Done: the frames are moved, and the shard ends where ClickHouse has it.
	Done bool `json:"done,omitempty"`
}

// Frames is how many frames are to be moved.
func (f *Fork) Frames() (n uint64) {
	for _, s := range f.Move {
		n += s.To - s.From + 1
	}
	return n
}

// reasonForked is why a shard was left that forked.
const reasonForked = "forked"

// Forked reports whether a shard forked and is not settled yet.
func (s *Shard) Forked() bool { return s.Fork != nil && !s.Fork.Done }

// KeptRows are the rows of shards that no checkpoint counts; see Fork.Kept.
func (s *Shard) KeptRows() int64 {
	if s.Fork == nil {
		return 0
	}
	return s.Fork.Kept
}

// WentBack reports whether ClickHouse has less of a shard that forked than it had, where it has a head, and so many rows with those
// that erasures took.
func (s *Shard) WentBack(head, rows uint64) bool {
	return s.Fork != nil && (s.Head(head) < s.Fork.LeftHead || rows < s.Fork.LeftRows)
}

// Leave takes an active shard that forked out of its lane: the router that owns the lane seals it
// once no other can add to it, and goes on in a new one. fork is what ClickHouse has of it. The first to
// say so decides.
func (r *Registry) Leave(ctx context.Context, ref schemas.ShardRef, fork Fork) error {
	for {
		h, err := r.Head(ctx, ref.Topic, ref.Month)
		if err != nil {
			return err
		}
		s, err := r.Shard(ctx, ref)
		if err != nil || s.Status != Active || s.Fork != nil {
			return err
		}
		f := fork
		f.To = schemas.NewShard(s.ID.Lane())
		s.Fork = &f
		if s.Reason == "" {
			s.Reason = reasonForked
		}
		h.Retired = maps.Clone(h.Retired)
		if h.Retired == nil {
			h.Retired = map[schemas.Shard]int{}
		}
		h.Retired[s.ID] = s.ID.Lane()
		if h.Active[s.ID.Lane()] == s.ID {
			h.Active = maps.Clone(h.Active)
			delete(h.Active, s.ID.Lane())
		}
		err = r.commit(ctx, &change{key: s.key(), rev: s.rev, v: &s}, &change{key: h.key(), rev: h.rev, v: &h})
		if err == nil || !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// AmendFork changes what is known of a fork, by a function that reports whether it did.
func (r *Registry) AmendFork(ctx context.Context, ref schemas.ShardRef, f func(*Shard) bool) (Shard, error) {
	return r.amend(ctx, ref, func(s *Shard) bool {
		if s.Fork == nil {
			return false
		}
		fork := *s.Fork
		s.Fork = &fork
		return f(s)
	})
}
