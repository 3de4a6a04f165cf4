package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Tally is what erasures took from a shard, so that frames and rows can still be
// compared.
//
// Of all erasures only one at a time is pending in a shard. Its numbers are
// written before a row goes; a process that finds it there carries it out, which may be
// done any number of times, and books it, before another may count. So no row is
// counted twice, and no number is lost with the process that had it.
type Tally struct {
	Topic string        `json:"topic"`
	Month schemas.Month `json:"month"`
	Shard schemas.Shard `json:"shard"`
	// Gone are the rows that are gone, by the position that carried them.
	Gone    []Cut    `json:"gone,omitempty"`
	Pending *Pending `json:"pending,omitempty"`
	// Receipts are by erasure.
	Receipts map[string]Receipt `json:"receipts,omitempty"`
	// Forgotten is the receipts of erasures that were forgotten, joined.
	Forgotten *Receipt `json:"forgotten,omitempty"`
	// Purged are positions taken out of SHARDS on purpose.
	Purged []Span `json:"purged,omitempty"`
	// ClearingAt is since when the shard's fields are being cleared; see Clearing.
	ClearingAt time.Time `json:"clearing_at,omitzero"`

	rev uint64
}

// Cut is rows gone from the positions after the cut before it, up to Pos.
type Cut struct {
	Pos  uint64 `json:"p"`
	Rows uint64 `json:"n"`
	// IDs is the sum of the rows' ids (schemas.IDSumSQL). Summed: it is known; earlier
	// versions did not note it.
	IDs    uint64 `json:"i,omitempty"`
	Summed bool   `json:"s,omitempty"`
}

// with adds the rows of another cut, at the position of this one.
func (c Cut) with(o Cut) Cut {
	c.Rows, c.IDs, c.Summed = c.Rows+o.Rows, c.IDs+o.IDs, c.Summed && o.Summed
	return c
}

// Span is positions, both ends inclusive.
type Span struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Pending is an erasure that was counted in the shard and not booked yet.
type Pending struct {
	Erasure string    `json:"erasure"`
	Cuts    []Cut     `json:"cuts"`
	Rows    uint64    `json:"rows"`
	Before  uint64    `json:"before"` // rows of the shard when it was counted
	At      time.Time `json:"at"`
	// Drop: no row of the shard stays, and no frame will come: the partition goes.
	Drop bool `json:"drop,omitempty"`
	// Diffs of the shard's sums, of which retention dropped the rows.
	Diffs uint64 `json:"diffs,omitempty"`
	// Seal is the shard's seal that its rows were compared with, 0 for none.
	Seal uint64 `json:"seal,omitempty"`
	// Unsealed is the digest that the rows had then, where it was not the seal's: they were
	// changed between the seal and the erasure.
	Unsealed string `json:"unsealed,omitempty"`
}

// Receipt is what one erasure did to the shard.
type Receipt struct {
	// Rows were erased, of Before; After were left.
	Rows   uint64 `json:"rows"`
	Before uint64 `json:"before"`
	After  uint64 `json:"after"`
	// Dropped: the whole partition went.
	Dropped bool `json:"dropped,omitempty"`
	// Diffs were taken out of the shard's sums, after retention had dropped the rows.
	Diffs uint64 `json:"diffs,omitempty"`
	// Kept: retention dropped the rows before they were erased, and the shard's sums, which
	// stand for them too, do not tell them from others.
	Kept bool `json:"kept,omitempty"`
	// RewrittenAt is when the last part that held the rows was replaced. Parts from
	// before it stay on ClickHouse's disk, unread, until it removes them.
	RewrittenAt time.Time `json:"rewritten_at"`
	// Seal and Unsealed are as in Pending.
	Seal     uint64 `json:"seal,omitempty"`
	Unsealed string `json:"unsealed,omitempty"`
}

// MaxCuts bounds a list of cuts; beyond it neighbours are joined. The sum up to a
// position between two joined cuts is then known only at the higher one.
const MaxCuts = 2048

// MaxSpans bounds the purged positions a tally keeps apart; a frame more is not
// purged.
const MaxSpans = 4096

// AddCuts is the sum of two lists, by position.
func AddCuts(a, b []Cut) []Cut {
	out := append(slices.Clone(a), b...)
	slices.SortFunc(out, func(x, y Cut) int {
		if x.Pos < y.Pos {
			return -1
		} else if x.Pos > y.Pos {
			return 1
		}
		return 0
	})
	n := 0
	for _, c := range out {
		if n > 0 && out[n-1].Pos == c.Pos {
			out[n-1] = out[n-1].with(c)
			continue
		}
		out[n] = c
		n++
	}
	out = out[:n]
	for len(out) > MaxCuts {
		half := out[:0]
		for i := 0; i < len(out); i += 2 {
			c := out[i]
			if i+1 < len(out) {
				c = out[i+1].with(c)
			}
			half = append(half, c)
		}
		out = half
	}
	return out
}

// SumCuts is the rows of all cuts up to a position.
func SumCuts(cuts []Cut, pos uint64) (n uint64) {
	for _, c := range cuts {
		if c.Pos <= pos {
			n += c.Rows
		}
	}
	return n
}

// SumIDs is the sum of the ids of all cuts up to a position, and whether it is known.
func SumIDs(cuts []Cut, pos uint64) (sum uint64, ok bool) {
	for _, c := range cuts {
		if c.Pos > pos {
			continue
		}
		if !c.Summed {
			return 0, false
		}
		sum += c.IDs
	}
	return sum, true
}

// GoneUpTo is how many rows at most and at least are gone from the positions up
// to pos: the two differ while an erasure is pending.
func (t *Tally) GoneUpTo(pos uint64) (least, most uint64) {
	least = SumCuts(t.Gone, pos)
	most = least
	if t.Pending != nil {
		most += SumCuts(t.Pending.Cuts, pos)
	}
	return least, most
}

// Explains reports whether erasures explain that a shard has so many rows up to pos,
// where its frames brought so many.
func (t *Tally) Explains(pos, brought, rows uint64) bool {
	least, most := t.GoneUpTo(pos)
	return rows <= brought && least <= brought-rows && brought-rows <= most
}

// LastCut is the highest position up to pos that rows are gone from, or go from;
// 0 when there is none. An insert ended there, though ClickHouse may not show it
// any more.
func (t *Tally) LastCut(pos uint64) (last uint64) {
	cuts := t.Gone
	if t.Pending != nil {
		cuts = slices.Concat(cuts, t.Pending.Cuts)
	}
	for _, c := range cuts {
		if c.Pos <= pos {
			last = max(last, c.Pos)
		}
	}
	return last
}

// IsPurged says whether the position was taken out of SHARDS on purpose.
func (t *Tally) IsPurged(pos uint64) bool {
	return slices.ContainsFunc(t.Purged, func(s Span) bool { return s.From <= pos && pos <= s.To })
}

// Dropped says that an erasure took the shard's partition whole, and none is under
// way: nothing of the shard is to stand anywhere.
func (t *Tally) Dropped() bool {
	dropped := t.Forgotten != nil && t.Forgotten.Dropped
	for _, r := range t.Receipts {
		dropped = dropped || r.Dropped
	}
	return dropped && t.Pending == nil
}

// AddPurged adds positions to the purged ones.
func (t *Tally) AddPurged(positions ...uint64) {
	for _, p := range positions {
		if !t.IsPurged(p) {
			t.Purged = append(t.Purged, Span{p, p})
		}
	}
	slices.SortFunc(t.Purged, func(a, b Span) int {
		if a.From < b.From {
			return -1
		}
		return 1
	})
	joined := t.Purged[:0]
	for _, s := range t.Purged {
		if n := len(joined); n > 0 && joined[n-1].To+1 == s.From {
			joined[n-1].To = s.To
			continue
		}
		joined = append(joined, s)
	}
	t.Purged = joined
}

// PurgedPositions is how many they are.
func (t *Tally) PurgedPositions() (n uint64) {
	for _, s := range t.Purged {
		n += s.To - s.From + 1
	}
	return n
}

// Ref returns the shard that the record is of.
func (t *Tally) Ref() schemas.ShardRef {
	return schemas.ShardRef{Topic: t.Topic, Month: t.Month, ID: t.Shard}
}

func (t *Tally) key() string { return schemas.TallyKey(t.Topic, t.Month, t.Shard) }

// Tally reads a shard's tally; one that was never written is empty.
func (r *Registry) Tally(ctx context.Context, ref schemas.ShardRef) (Tally, error) {
	t := Tally{Topic: ref.Topic, Month: ref.Month, Shard: ref.ID}
	rev, err := r.get(ctx, t.key(), &t)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	t.rev = rev
	return t, err
}

// Tallies reads all tallies of a topic: of the shards that erasures touched.
func (r *Registry) Tallies(ctx context.Context, topic string) (map[schemas.Shard]Tally, error) {
	out := map[schemas.Shard]Tally{}
	tallies, err := list[Tally](ctx, r, schemas.TallyKeys(topic))
	for _, t := range tallies {
		out[t.Shard] = t
	}
	return out, err
}

// Begin writes a pending erasure into a shard's tally. ErrConflict: another
// process changed the tally since it was read; read it again, and count again.
func (r *Registry) Begin(ctx context.Context, t *Tally, p Pending) error {
	next := *t
	next.Pending = &p
	c := &change{key: t.key(), rev: t.rev, v: &next}
	if err := r.commit(ctx, c); err != nil {
		return err
	}
	next.rev = c.rev
	*t = next
	return nil
}

// Book ends the pending erasure of a tally, whose rows are gone: they join those
// that are, and the shard's entry has its rows less. count says how many rows the
// shard has now, which a closed shard's entry states exactly: it is asked after the
// entry was read, and again when the entry changed meanwhile, for who closed the
// shard may have counted rows that count did not see, or the other way round.
func (r *Registry) Book(ctx context.Context, t *Tally, receipt Receipt, count func(context.Context) (uint64, error)) error {
	id := t.Pending.Erasure
	next := *t
	next.Receipts = maps.Clone(t.Receipts)
	if next.Receipts == nil {
		next.Receipts = map[string]Receipt{}
	}
	next.Gone, next.Pending = AddCuts(t.Gone, t.Pending.Cuts), nil
	for {
		s, err := r.Shard(ctx, t.Ref())
		if err != nil {
			return err
		}
		if receipt.After, err = count(ctx); err != nil {
			return err
		}
		next.Receipts[id] = receipt
		if s.Status == Closed {
			s.Rows = receipt.After
		} else {
			s.Rows -= min(s.Rows, t.Pending.Rows)
		}
		c := &change{key: t.key(), rev: t.rev, v: &next}
		err = r.commit(ctx, c, &change{key: s.key(), rev: s.rev, v: &s})
		if err == nil {
			next.rev = c.rev
			*t = next
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
		now, err := r.Tally(ctx, t.Ref())
		if err != nil {
			return err
		}
		if now.rev != t.rev {
			return fmt.Errorf("%w: %s", ErrConflict, t.key())
		}
	}
}

// AmendTally changes a tally by compare-and-set until f, on a fresh reading, sees
// nothing to change.
func (r *Registry) AmendTally(ctx context.Context, ref schemas.ShardRef, f func(*Tally) (changed bool)) (Tally, error) {
	return amend(ctx, r, func() (Tally, error) { return r.Tally(ctx, ref) }, f)
}
