package cleaner

import (
	"time"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Kind is what the cleaner must know of a kind of topics.
type Kind struct {
	// Parse reads a record from its message, of which only the headers may be there. An
	// error means that it is not a record: a stray.
	Parse func(*streams.Message) (Record, error)
	// Says is an SQL expression over a row of the topic's table, a String. It must equal
	// Row.Says, or the row is not the record's.
	Says string
	// HotFor is how long records of a topic stay. The settle time is the least.
	HotFor func(*schemas.Topic) time.Duration
	// Stub is what stays in place of a key's last record, whose row is at a place. It is made of the
	// record's headers. Nil: nothing of a key leaves before the key is over, and then all of it does.
	Stub func(*streams.Message, schemas.FrontPlace) (fronts.Record, error)
	// Refresh is a key's last record again, which frees the older ones.
	Refresh func(*streams.Message, schemas.FrontPlace) (fronts.Record, error)
}

// cleaned are the kinds whose fronts are cleaned.
var cleaned = map[schemas.Kind]Kind{kinds.Document: documentKind, kinds.Timer: timerKind}

// Record is what the cleaner knows of a message of a front.
type Record struct {
	// Row is the row that the record's event became; nil of a stub.
	Row *Row
	// Over: the key is over with this record, and needs not even a stub.
	Over bool
	// Place is where a stub or a refresh says that the row is.
	Place *schemas.FrontPlace
}

// Row is how the row of a record is told.
type Row struct {
	Seq  uint64 // of the record in the front, as its event had it
	Ts   int64  // the event's time, unix ns
	Says string // see Kind.Says
}
