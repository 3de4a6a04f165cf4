package records

import (
	"context"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Kind is what those must know of a kind of topics who bring its front against its table.
type Kind struct {
	// Front is the stream, and Noun what a key is, for people.
	Front, Noun string
	// Name names a key, for people.
	Name func(subject string) string
	// Parse reads a record from its message, of which only the headers may be there. schemas.ErrRecord: it is none.
	Parse func(*streams.Message) (*Record, error)
	// Event is what the row of a record says, by the whole message. schemas.ErrRecord: it is none.
	Event func(t *schemas.Topic, m *streams.Message) (schemas.Event, error)
	// Whose reports whether a topic has the key of a subject.
	Whose func(t *schemas.Topic, subject string) bool

	// Newest calls f with the newest row of each key of a topic's lane, or of those of the listed ones. It may call
	// it with more than those.
	Newest func(ctx context.Context, db *tables.DB, t *schemas.Topic, lane int, subjects []string, f func(Row) error) error
	// Meant lists up to n keys of a topic's lane, or of the listed ones, with rows that fulfil a condition, after one.
	Meant func(ctx context.Context, db *tables.DB, t *schemas.Topic, lane int, subjects []string, c tables.Condition, after *Meant, n int) ([]Meant, error)
	// Compare compares a key's last record with its newest row, nil for none. It says what is wrong, Equal or Waiting.
	Compare func(s *TopicState, last *Last, row *Row) string

	// Clear decides what an erasure does next with a key that it means, by the key's last record. Up to the fence all is stored.
	Clear func(t *schemas.Topic, last *Last, m *Meant, fence uint64) Clearing

	// Fate decides what a front that may have lost a key's end needs of it, by its last record, nil for none, and its newest row.
	Fate func(r *Record, row *Row) Fate
	// Restored is what comes back then, for people: "stubs".
	Restored, RestoredWhat string
	// Restore makes the records that come back of lost keys. One whose rows went meanwhile is left out.
	Restore func(ctx context.Context, db *tables.DB, t *schemas.Topic, lost []Lost, now func() (int64, error)) ([]fronts.Record, error)
	// Again is a key's last record as it is put once more, under a sequence that was not given before. what gets a message of the
	// key by its sequence. Nil: what it needs is gone.
	Again func(ctx context.Context, db *tables.DB, t *schemas.Topic, last *streams.Message, at func(seq uint64) (*streams.Message, error), now func() (int64, error)) (*fronts.Record, error)

	// Says is what a record says of its row, and Column the same of the row, as an SQL expression: a String. Where the two differ
	// the row is not the record's.
	Says   func(*Record) string
	Column string
	// HotFor is how long records of a topic stay once they are stored.
	HotFor func(*schemas.Topic) time.Duration
	// Stub is what stays in place of a key's last record, whose row is at a place. It is made of the record's headers.
	// Nil: nothing of a key leaves before the key is over, and then all of it does.
	Stub func(*streams.Message, schemas.FrontPlace) (fronts.Record, error)
	// Refresh is a key's last record again, which frees the older ones.
	Refresh func(*streams.Message, schemas.FrontPlace) (fronts.Record, error)
}

// all are the kinds that have a front.
var all = map[schemas.Kind]*Kind{kinds.Document: Documents, kinds.Timer: Timers}

// Of is the kind of a topic; nil where it has no front.
func Of(t *schemas.Topic) *Kind { return all[t.Kind] }

// OfFront is the kind whose front a stream is; nil: none's.
func OfFront(stream string) *Kind {
	for _, k := range all {
		if k.Front == stream {
			return k
		}
	}
	return nil
}

// Fronts are the streams that are fronts, in order.
func Fronts() []string {
	var fronts []string
	for _, k := range all {
		fronts = append(fronts, k.Front)
	}
	slices.Sort(fronts)
	return fronts
}

// Whole reports whether a key leaves its front whole, and nothing of it before.
func (k *Kind) Whole() bool { return k.Stub == nil }

// Record is a record of a front, by its headers.
type Record struct {
	Seq uint64 // of its message
	// Row is the sequence that its row has: of a stub and of a refresh that of the record which they stand for.
	Row     uint64
	Changed int64 // unix ns
	User    string
	Size    int // of the payload
	// Over: the key is over with it.
	Over bool
	// Stub and Refresh say where the row is of a record that was archived.
	Stub, Refresh *schemas.FrontPlace
	// Needs is the sequence of another record that this one stands on; 0: none.
	Needs uint64
	// Unit is what erasures evaluate whole: the document, or the life of a timer.
	Unit string

	of any // what its kind makes of it
}

// Place is where a stub or a refresh says that the row is; nil of other records.
func (r *Record) Place() *schemas.FrontPlace {
	if r.Stub != nil {
		return r.Stub
	}
	return r.Refresh
}

// Row is the newest row of a key.
type Row struct {
	Subject string
	Seq     uint64 // of the record, in the front
	// Place is where it is, of a kind whose records retention takes out of the front before it takes their rows.
	Place *schemas.FrontPlace

	of any
}

// Lost is a key of which a front lost the end.
type Lost struct {
	Row
	// Expect is the sequence of the last message that the front has of the key; 0: nothing.
	Expect uint64
	// Misplaced: that message is not a record, and goes.
	Misplaced bool
}

// Fate is what a front needs of a key.
type Fate int

// The fates of a key.
const (
	Keep    Fate = iota
	Restore      // it comes back
	Drop         // it is over, and goes
	Lose         // it cannot come back
)

// Meant is a key with rows that fulfil a condition.
type Meant struct {
	Subject string

	of any
}

// Clearing is what an erasure does next with a key of a front.
type Clearing struct {
	// Put makes a record that is written, and then the key is looked at again; nil: none.
	Put func(now int64) (fronts.Record, error)
	// Goes says which go of the key's messages, given by their headers, the oldest first; nil: none.
	Goes func([]*streams.Message) []uint64
	// Again: the key is looked at again then.
	Again bool
}

// TopicState is what is known of a topic while its front is compared.
type TopicState struct {
	Topic *schemas.Topic
	UpTo  map[int]uint64 // how far each lane is stored
	Now   time.Time
	// Shards are the topic's, read after front and table: what retention takes is marked before it goes. Nil on a first look, of
	// which nothing is reported.
	Shards []registry.Shard
}

// What Compare says beside what is wrong.
const (
	Equal   = ""
	Waiting = "waiting"
)
