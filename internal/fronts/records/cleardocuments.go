package records

import (
	"strconv"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// clearing is what is done with a document.
type clearing int

const (
	clearOlder  clearing = iota // its records below the last go
	clearAll                    // all go, and it is looked at again
	clearRemove                 // a removal follows, and then all below it go
)

// clears decides what goes of a document whose last record is r, and up to which sequence,
// with it. What came after the fence stays there too.
func clears(r *document.Record, fence uint64, d *meantVersions) (clearing, uint64) {
	switch {
	case r.RowSeq() > fence, !d.Last:
		return clearOlder, r.Seq - 1
	case d.All:
		return clearAll, r.Seq
	}
	return clearRemove, 0
}

func clearDocument(t *schemas.Topic, last *Last, m *Meant, fence uint64) Clearing {
	d, r := m.of.(*meantVersions), last.Document()
	if r == nil {
		if !d.Last || d.All {
			return Clearing{}
		}
		// Its removal is meant too, and older versions stay: another removal follows.
		lane := document.Lane(t, d.ID)
		return Clearing{Put: removal(&document.Record{Topic: t.Name, First: t.First, Lane: strconv.Itoa(lane), ID: d.ID, Path: d.Path, Version: d.Version, Created: d.Created}, last.At)}
	}
	what, upTo := clears(r, fence, d)
	if what == clearRemove {
		return Clearing{Put: removal(r, last.At)} // what lies below the removal goes then
	}
	return Clearing{Again: what == clearAll, Goes: func(ms []*streams.Message) (seqs []uint64) {
		for _, m := range ms {
			if m.Sequence <= upTo && rowSeq(m) <= fence {
				seqs = append(seqs, m.Sequence)
			}
		}
		return seqs
	}}
}

// rowSeq is the sequence of a document's record that a message has or stands for. The cleaner may
// have put a record from below the fence again above it.
func rowSeq(m *streams.Message) uint64 {
	r, err := document.Parse(m.Subject, m.Sequence, m.Header, nil, m.Size)
	if err != nil {
		return m.Sequence
	}
	return r.RowSeq()
}

// removal is a removal of a document. It says nothing of who owned or changed it.
func removal(r *document.Record, expect uint64) func(now int64) (fronts.Record, error) {
	return func(now int64) (fronts.Record, error) {
		changed := schemas.ChangedAfter(r.Changed, now)
		gone := document.Record{
			Topic: r.Topic, First: r.First, Lane: r.Lane, ID: r.ID, Path: r.Path, Op: schemas.OpRemoved, Version: r.Version + 1, Created: min(r.Created, changed),
			Changed: changed, By: "erasure",
		}
		return fronts.Record{Subject: gone.Subject(), Header: gone.Header(), Expect: expect, For: fronts.End}, nil
	}
}
