package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// State is how far an erasure has come.
type State string

// The states of an erasure, in order. Readers of the streams leave its events out
// from Settling on; sinks only from Erased on, because before that everything it
// covers has to be stored once, so that it can be counted.
const (
	// Waiting: the entry is written; what was accepted before is on its way to
	// ClickHouse.
	Waiting State = "settling"
	// Erasing: everything it covers was stored; shard after shard is erased.
	Erasing State = "erasing"
	// Erased: no part that ClickHouse reads has any of it.
	Erased State = "erased"
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
	// Fence is the last sequence of EVENTS just after the entry was written: what was
	// accepted later is not meant.
	Fence uint64 `json:"fence"`
	// FenceTime is when EVENTS had that sequence, unix ns by the server's clock: what
	// has a sequence up to Fence and was stored later got it after a cut, and is not
	// meant either.
	FenceTime int64 `json:"fence_time"`
	// Front is the stream of Fence and FenceTime where it is not EVENTS: Cond then names the
	// sequence of each row too, since a frame may have records from both sides.
	Front string `json:"front,omitempty"`
	// Reason is what the person who asked wrote.
	Reason string `json:"reason,omitempty"`
	// By is the name of the token that asked over HTTP; empty: a command of the operator asked.
	By        string    `json:"by,omitempty"`
	State     State     `json:"state"`
	CreatedAt time.Time `json:"created_at"`
	StoredAt  time.Time `json:"settled_at,omitzero"`
	ErasedAt  time.Time `json:"erased_at,omitzero"`
	// Bounds are, for the shards that were not at their end when everything covered
	// was in SHARDS, the last covered position. Every other shard of that time is
	// covered whole. While it is settling they are those whose frames left SHARDS since.
	Bounds map[schemas.Shard]uint64 `json:"bounds,omitempty"`
	// Tails are the last positions that the shards which may still grow had when the
	// entry was written, or before frames of them left SHARDS, all of them from before
	// the fence; gone once it is settled.
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

	// Rev is the revision of the entry that was read.
	Rev uint64 `json:"-"`
	// Count is how often the entry was written, where it was read by a list.
	Count uint64 `json:"-"`
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
// all, at about 1 KiB each, and a frame that all of them cover is evaluated by each.
const MaxErasures = 1000

// MaxErasureBytes bounds one entry, well below what a message may have.
const MaxErasureBytes = 256 << 10

// MaxTopicBytes bounds the conditions of a topic's erasures together, with their parameters: each
// statement that heeds them has them all, and every reader of the topic holds them.
const MaxTopicBytes = 4 << 20

// MaxTerms bounds what ClickHouse compares for each row that all erasures of a topic cover (see
// Cover.Weight): to understand 5,000 comparisons takes it 3 s of one core.
const MaxTerms = 5000

// Key is the key of the entry in the bucket.
func (e *Erasure) Key() string { return schemas.LedgerKey(e.Topic, e.ID) }

// Ended reports whether the erasure was carried out and can be carried out again. Of one that
// was redacted it is no longer known what it named.
func (e *Erasure) Ended() bool { return e.State == Erased && !e.Redacted }

// UpTo is the fence: the last message of EVENTS that is meant.
func (e *Erasure) UpTo() schemas.Source { return schemas.Source{Seq: e.Fence, Stored: e.FenceTime} }

// Means reports whether a message of EVENTS was accepted up to the fence.
func (e *Erasure) Means(s schemas.Source) bool { return s.UpTo(e.UpTo()) }

// Pseudonym stands for a name in what others may see: the same for the same name
// in one erasure, and of no use with any other.
func Pseudonym(erasure, name string) string {
	sum := sha256.Sum256([]byte(erasure + "\x00" + name))
	return "sha256:" + hex.EncodeToString(sum[:8])
}

// Named reports whether the erasure names a user, or names none. One that was redacted knows its users by their
// pseudonyms.
func (e *Erasure) Named(user string) bool {
	return len(e.Users) == 0 || slices.Contains(e.Users, user) || e.Redacted && slices.Contains(e.Users, Pseudonym(e.ID, user))
}

// MayMean reports whether the erasure means a record of its front by what the record's headers say: the sequence
// of its row, its time and its user. Without a filter that is sure.
func (e *Erasure) MayMean(seq uint64, changed int64, user string) bool {
	return e.Front != "" && seq <= e.Fence && e.From <= changed && changed <= e.To && e.Named(user)
}

// Covers says whether the erasure may concern a frame: that of a message of
// EVENTS, with events between minTs and maxTs (unix ns).
func (e *Erasure) Covers(s schemas.Source, minTs, maxTs int64) bool {
	return e.Means(s) && e.From <= maxTs && e.To >= minTs
}

// Includes reports whether an erasure means all that another does. Their conditions are not understood:
// a filter is another, or none.
func (e *Erasure) Includes(o *Erasure) bool {
	users := len(e.Users) == 0 || len(o.Users) > 0 && !slices.ContainsFunc(o.Users, func(u string) bool { return !slices.Contains(e.Users, u) })
	return e.Topic == o.Topic && e.Front == o.Front && !e.Redacted && !o.Redacted && users && (e.Where == "" || e.Where == o.Where) &&
		e.From <= o.From && o.To <= e.To && o.UpTo().UpTo(e.UpTo())
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
