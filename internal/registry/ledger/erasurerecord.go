package ledger

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// ErasureRecord is what erasures took from a shard, so that frames and rows can still be
// compared.
//
// Of all erasures only one at a time is pending in a shard. Its numbers are
// written before a row goes; a process that finds it there carries it out, which may be
// done any number of times, and books it, before another may count. So no row is
// counted twice, and no number is lost with the process that had it.
type ErasureRecord struct {
	Topic string        `json:"topic"`
	Month schemas.Month `json:"month"`
	Shard schemas.Shard `json:"shard"`
	// Gone are the rows that are gone, by the position that carried them.
	Gone    []Cut    `json:"gone,omitempty"`
	Pending *Pending `json:"pending,omitempty"`
	// Receipts are by erasure.
	Receipts map[string]Receipt `json:"receipts,omitempty"`
	// Counted is up to which position an erasure that has a receipt counted the rows; see CountedUpTo.
	Counted map[string]uint64 `json:"counted,omitempty"`
	// Forgotten is the receipts of erasures that were forgotten, joined.
	Forgotten *Receipt `json:"forgotten,omitempty"`
	// Purged are positions taken out of SHARDS on purpose.
	Purged []Span `json:"purged,omitempty"`
	// Silent are the messages of EVENTS that frames came from which were taken out; see AddSilent.
	Silent []checkpoint.Silent `json:"silent,omitempty"`
	// ClearingAt is since when the shard's fields are being cleared; see Clearing.
	ClearingAt time.Time `json:"clearing_at,omitzero"`

	// Rev is the revision of the entry that was read.
	Rev uint64 `json:"-"`
	// Count is how often the entry was written, where it was read by a list.
	Count uint64 `json:"-"`
}

// Pending is an erasure that was counted in the shard and not booked yet.
type Pending struct {
	Erasure string `json:"erasure"`
	Cuts    []Cut  `json:"cuts"`
	Rows    uint64 `json:"rows"`
	Before  uint64 `json:"before"` // rows of the shard when it was counted
	// UpTo is the last position that was stored when it was counted: a row above it came later and is not among the Rows,
	// so it does not go with them. 0: all go that there are, as an older version wrote it.
	UpTo uint64    `json:"up_to,omitempty"`
	At   time.Time `json:"at"`
	// Drop: no row of the shard stays, and no frame will come: the partition goes.
	Drop bool `json:"drop,omitempty"`
	// Closed: the shard was closed when it was counted, so its entry had all of its rows.
	Closed bool `json:"closed,omitempty"`
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

// Ref returns the shard that the record is of.
func (t *ErasureRecord) Ref() schemas.ShardRef {
	return schemas.ShardRef{Topic: t.Topic, Month: t.Month, ID: t.Shard}
}

// Key is the key of the entry in the bucket.
func (t *ErasureRecord) Key() string { return schemas.ErasureRecordKey(t.Topic, t.Month, t.Shard) }

// GoneUpTo is how many rows at most and at least are gone from the positions up
// to pos: the two differ while an erasure is pending.
func (t *ErasureRecord) GoneUpTo(pos uint64) (least, most uint64) {
	least = SumCuts(t.Gone, pos)
	most = least
	if t.Pending != nil {
		most += SumCuts(t.Pending.Cuts, pos)
	}
	return least, most
}

// Cuts are the rows that are gone, or go.
func (t *ErasureRecord) Cuts() []Cut {
	if t.Pending == nil {
		return t.Gone
	}
	return slices.Concat(t.Gone, t.Pending.Cuts)
}

// GoneBetween is how many rows are gone, or go, from positions above lo and up to hi. What is not known
// to be from there does not count.
func (t *ErasureRecord) GoneBetween(lo, hi uint64) (n uint64) {
	for _, c := range t.Cuts() {
		if c.First() > lo && c.Pos <= hi {
			n += c.Rows
		}
	}
	return n
}

// Explains reports whether erasures explain that a shard has so many rows up to pos,
// where its frames brought so many.
func (t *ErasureRecord) Explains(pos, brought, rows uint64) bool {
	least, most := t.GoneUpTo(pos)
	return rows <= brought && least <= brought-rows && brought-rows <= most
}

// LastGone is the highest position up to pos that rows are gone from, or go from;
// 0 when there is none. ClickHouse may not show it any more.
func (t *ErasureRecord) LastGone(pos uint64) (last uint64) {
	for _, c := range t.Cuts() {
		if c.Pos <= pos {
			last = max(last, c.Pos)
		}
	}
	return last
}

// Dropped says that an erasure took the shard's partition whole, and none is under
// way: nothing of the shard is to stand anywhere.
func (t *ErasureRecord) Dropped() bool {
	dropped := t.Forgotten != nil && t.Forgotten.Dropped
	for _, r := range t.Receipts {
		dropped = dropped || r.Dropped
	}
	return dropped && t.Pending == nil
}

// ClearingLapse is after how long a mark no longer holds erasures up: clearing a full shard
// takes minutes, and a janitor that was killed meanwhile begins again within one round,
// with a new mark.
const ClearingLapse = time.Hour

// Clearing says that the shard's fields are being cleared: what an erasure counted
// now it might not find any more.
func (t *ErasureRecord) Clearing(now time.Time) bool {
	return !t.ClearingAt.IsZero() && now.Sub(t.ClearingAt) < ClearingLapse
}

// CountedUpTo is the last position up to which an erasure that has a receipt counted the shard's rows: what it finds there again
// came back, and what it finds above was stored since. Where that was not noted it counted all.
func (t *ErasureRecord) CountedUpTo(id string) uint64 {
	if pos, noted := t.Counted[id]; noted {
		return pos
	}
	return math.MaxUint64
}

// Booked is the record once the pending erasure is at its end, without its receipt.
func (t *ErasureRecord) Booked() ErasureRecord {
	next := *t
	next.Receipts = maps.Clone(t.Receipts)
	if next.Receipts == nil {
		next.Receipts = map[string]Receipt{}
	}
	id, upTo := t.Pending.Erasure, t.Pending.UpTo
	if _, again := t.Receipts[id]; upTo > 0 && (!again || t.CountedUpTo(id) < math.MaxUint64) {
		next.Counted = maps.Clone(t.Counted)
		if next.Counted == nil {
			next.Counted = map[string]uint64{}
		}
		next.Counted[id] = max(t.Counted[id], upTo)
	}
	next.Gone, next.Pending = AddCuts(t.Gone, t.Pending.Cuts), nil
	return next
}

// Join takes receipts into that of the forgotten ones. It says whether any was
// there.
func (t *ErasureRecord) Join(ids []string) (changed bool) {
	for _, id := range ids {
		r, ok := t.Receipts[id]
		if !ok {
			continue
		}
		sum := r
		if old := t.Forgotten; old != nil {
			sum.Rows, sum.Before, sum.After = r.Rows+old.Rows, max(r.Before, old.Before), min(r.After, old.After)
			sum.Dropped, sum.Diffs, sum.Kept = r.Dropped || old.Dropped, r.Diffs+old.Diffs, r.Kept || old.Kept
			if r.Unsealed == "" { // that rows differed from their seal stays known
				sum.Seal, sum.Unsealed = old.Seal, old.Unsealed
			}
			if old.RewrittenAt.After(r.RewrittenAt) {
				sum.RewrittenAt = old.RewrittenAt
			}
		}
		t.Forgotten = &sum
		delete(t.Receipts, id)
		delete(t.Counted, id)
		changed = true
	}
	return changed
}
