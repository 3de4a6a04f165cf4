package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// ErasureState is how far an erasure has come.
type ErasureState string

// The states of an erasure, in order. Readers of the streams leave its events out
// from Settling on; sinks only from Erased on, because before that everything it
// covers has to be stored once, so that it can be counted.
const (
	// Settling: the entry is written; what was accepted before is on its way to
	// ClickHouse.
	Settling ErasureState = "settling"
	// Erasing: everything it covers was stored; shard after shard is erased.
	Erasing ErasureState = "erasing"
	// Erased: no part that ClickHouse reads has any of it.
	Erased ErasureState = "erased"
)

// Erasure is an entry of the ledger: which events are to be gone, for good.
type Erasure struct {
	ID    string `json:"id"`
	Topic string `json:"topic"`
	// Users and Where are what was asked for; an event must match both where both
	// are given. From and To (unix ns, inclusive) bound its time.
	Users []string `json:"users,omitempty"`
	Where string   `json:"where,omitempty"`
	From  int64    `json:"from"`
	To    int64    `json:"to"`
	// Cond is users and filter as a ClickHouse condition over the columns of schema
	// version Schema, with the parameters Params: p1, p2, …
	Cond   string            `json:"cond"`
	Params map[string]string `json:"params,omitempty"`
	Schema int               `json:"schema"`
	// Fence is the last sequence of EVENTS when the entry was written: what was
	// accepted later is not meant.
	Fence uint64 `json:"fence"`
	// FenceTime is when EVENTS had that sequence, unix ns by the server's clock: what
	// has a sequence up to Fence and was stored later got it after a cut, and is not
	// meant either. 0: an older version entered it, and Fence alone decides.
	FenceTime int64 `json:"fence_time,omitempty"`
	// Front is the stream of Fence and FenceTime where it is not EVENTS: Cond then names the
	// sequence of each row too, since a frame may have records from both sides.
	Front string `json:"front,omitempty"`
	// Reason is what the person who asked wrote.
	Reason    string       `json:"reason,omitempty"`
	State     ErasureState `json:"state"`
	CreatedAt time.Time    `json:"created_at"`
	SettledAt time.Time    `json:"settled_at,omitzero"`
	ErasedAt  time.Time    `json:"erased_at,omitzero"`
	// Bounds are, for the shards that were not at their end when everything covered
	// was in SHARDS, the last covered position. Every other shard of that time is
	// covered whole.
	Bounds map[schemas.Shard]uint64 `json:"bounds,omitempty"`
	// Tails are the last positions that the shards which may still grow had when the
	// entry was written, all of them from before the fence; gone once it is settled.
	Tails map[schemas.Shard]uint64 `json:"tails,omitempty"`
	// Rows were erased in Shards shards; set with Erased.
	Rows   uint64 `json:"rows"`
	Shards int    `json:"shards"`
	// Diffs were taken out of the sums of shards whose rows retention had dropped.
	Diffs uint64 `json:"diffs,omitempty"`
	// Purged is what went from the streams at once.
	Purged *Purge `json:"purged,omitempty"`
	// Redacted: users and filter are gone from the entry; the streams held nothing
	// of it any more.
	Redacted bool `json:"redacted,omitempty"`

	rev uint64
}

// Purge counts messages taken out of the streams and what they held.
type Purge struct {
	At time.Time `json:"at"`
	// Frames of SHARDS and messages of EVENTS and of the dead letters.
	Frames  uint64 `json:"frames"`
	Events  uint64 `json:"events"`
	Dead    uint64 `json:"dead"`
	Erased  uint64 `json:"erased"`  // rows of the erasure in those frames
	Company uint64 `json:"company"` // rows of others in those frames: ClickHouse alone has them now
}

// MaxErasures bounds the entries of a topic: every reader of streams holds them
// all, at about 1 KiB each, and a frame that all of them cover is judged by each.
const MaxErasures = 1000

// MaxErasureBytes bounds one entry, well below what a message may have.
const MaxErasureBytes = 256 << 10

func (e *Erasure) key() string { return schemas.LedgerKey(e.Topic, e.ID) }

// UpTo is the fence: the last message of EVENTS that is meant.
func (e *Erasure) UpTo() schemas.Source { return schemas.Source{Seq: e.Fence, Stored: e.FenceTime} }

// Means reports whether a message of EVENTS was accepted up to the fence.
func (e *Erasure) Means(s schemas.Source) bool { return s.UpTo(e.UpTo()) }

// Covers says whether the erasure may concern a frame: that of a message of
// EVENTS, with events between minTs and maxTs (unix ns).
func (e *Erasure) Covers(s schemas.Source, minTs, maxTs int64) bool {
	return e.Means(s) && e.From <= maxTs && e.To >= minTs
}

// Match is the condition that holds for the erasure's events, over the columns of
// a topic's table, and its parameters. prefix tells its parameters from those of
// another condition in the same statement. Where the rows come from is not in it:
// a frame must be covered, a stored row stand at a covered position.
func (e *Erasure) Match(prefix string) (cond string, params map[string]string) {
	cond, params = e.Names(prefix)
	return fmt.Sprintf("(ts >= fromUnixTimestamp64Nano(%d, 'UTC') AND ts <= fromUnixTimestamp64Nano(%d, 'UTC') AND (%s))", e.From, e.To, cond), params
}

// Names is Match without the time.
func (e *Erasure) Names(prefix string) (cond string, params map[string]string) {
	params = map[string]string{}
	for k, v := range e.Params {
		params[prefix+k] = v
	}
	// Conditions hold constants, names and {p1:Type}: nothing that people wrote.
	return strings.ReplaceAll(e.Cond, "{p", "{"+prefix+"p"), params
}

// Columns lists the columns that the condition names.
func (e *Erasure) Columns() []string {
	var out []string
	for i, part := range strings.Split(e.Cond, "`") {
		if i%2 == 1 && !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	return out
}

// Ledger is the erasures of a topic at one moment.
type Ledger struct {
	// Erasures, the highest fence first.
	Erasures []Erasure
}

// Ledger reads the erasures of a topic.
func (r *Registry) Ledger(ctx context.Context, topic string) (*Ledger, error) {
	return r.ledger(ctx, schemas.LedgerKeys(topic))
}

// Ledgers reads the erasures of every topic.
func (r *Registry) Ledgers(ctx context.Context) (map[string]*Ledger, error) {
	all, err := r.ledger(ctx, schemas.AllLedgerKeys)
	if err != nil {
		return nil, err
	}
	out := map[string]*Ledger{}
	for _, e := range all.Erasures {
		l := out[e.Topic]
		if l == nil {
			l = &Ledger{}
			out[e.Topic] = l
		}
		l.Erasures = append(l.Erasures, e)
	}
	return out, nil
}

func (r *Registry) ledger(ctx context.Context, filter string) (*Ledger, error) {
	erasures, err := list[Erasure](ctx, r, filter)
	slices.SortFunc(erasures, func(a, b Erasure) int {
		return cmp.Or(cmp.Compare(b.Fence, a.Fence), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.ID, b.ID))
	})
	return &Ledger{Erasures: erasures}, err
}

// ErasedSince returns the ids of the erasures of a topic that mean messages of EVENTS from a
// sequence on, with events between two times (unix ns).
func (r *Registry) ErasedSince(ctx context.Context, topic string, seq uint64, from, to int64) (ids []string, err error) {
	l, err := r.Ledger(ctx, topic)
	if err != nil {
		return nil, err
	}
	for _, e := range l.Covering(schemas.Source{Seq: seq}, from, to) {
		ids = append(ids, e.ID)
	}
	return ids, nil
}

// Erasure reads one entry of the ledger.
func (r *Registry) Erasure(ctx context.Context, topic, id string) (Erasure, error) {
	var e Erasure
	rev, err := r.get(ctx, schemas.LedgerKey(topic, id), &e)
	e.rev = rev
	return e, err
}

// Enter writes a new entry; ErrConflict when its id is taken, ErrLedgerFull when
// the topic has MaxErasures.
func (r *Registry) Enter(ctx context.Context, e Erasure) (Erasure, error) {
	l, err := r.Ledger(ctx, e.Topic)
	if err != nil {
		return e, err
	}
	if len(l.Erasures) >= MaxErasures {
		return e, fmt.Errorf("%w: topic %q has %d erasures, the limit is %d; name several users in one erasure, and `almanac erase forget` those that no stream needs any more", ErrLedgerFull, e.Topic, len(l.Erasures), MaxErasures)
	}
	data, err := json.Marshal(&e)
	if err != nil {
		return e, err
	}
	if len(data) > MaxErasureBytes {
		return e, fmt.Errorf("%w: the erasure has %d bytes, the limit is %d; split it", ErrLedgerFull, len(data), MaxErasureBytes)
	}
	c := &change{key: e.key(), v: &e}
	if err := r.commit(ctx, c); err != nil {
		return e, err
	}
	e.rev = c.rev
	return e, nil
}

// AmendErasure changes an entry by compare-and-set until f, on a fresh reading,
// sees nothing to change.
func (r *Registry) AmendErasure(ctx context.Context, topic, id string, f func(*Erasure) (changed bool)) (Erasure, error) {
	return amend(ctx, r, func() (Erasure, error) { return r.Erasure(ctx, topic, id) }, f)
}
