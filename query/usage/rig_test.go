package usage

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/query/once/oncetest"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// rig is a topic of kind meter whose table is filled by hand.
type rig struct {
	*oncetest.Rig
	read *Reader
	next int
	all  []row // of the property
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOf(t, schemas.Topic{Name: "usage", Kind: kinds.Meter})
}

// newRigOf is newRig with options of the topic.
func newRigOf(t *testing.T, declared schemas.Topic) *rig {
	t.Helper()
	r := oncetest.New(t, declared)
	return &rig{Rig: r, read: New(r.Query)}
}

// row is a diff as it is stored; shard tells shards of its month apart.
type row struct {
	meter, provider, space, cause, customer string
	delta                                   int64
	ms                                      int64
	shard                                   uint64
	id                                      string
	lane                                    int // of its cause; in gives it
}

func (r row) ref() schemas.ShardRef {
	n := uint64(schemas.MonthOf(r.ms*1e6))*10 + r.shard
	return schemas.ShardRef{Topic: "usage", Month: schemas.MonthOf(r.ms * 1e6), ID: schemas.Shard(uint64(r.lane)<<56 | n)}
}

// in gives rows the lanes that a topic's producers give them.
func in(topic *schemas.Topic, rows []row) {
	for i := range rows {
		e := schemas.Event{Type: rows[i].meter, Attrs: []schemas.Attr{schemas.String(kinds.ColProvider, rows[i].provider), schemas.String(kinds.ColSpace, rows[i].space), schemas.String(kinds.ColCause, rows[i].cause)}}
		rows[i].lane = schemas.LaneOf(topic, &e, rows[i].ms*1e6, "")
	}
}

// insert stores rows, each shard's as one insert.
func (r *rig) insert(rows ...row) {
	r.T.Helper()
	byShard := map[schemas.ShardRef][]row{}
	for _, w := range rows {
		r.next++ // ids are in the order of arrival, as a producer's are
		if w.id == "" {
			w.id = fmt.Sprintf("00000000-0000-7000-8000-%012x", r.next)
		}
		byShard[w.ref()] = append(byShard[w.ref()], w)
	}
	for ref, some := range byShard {
		r.Pos[ref] += 1 + uint64(rand.IntN(3))
		var b strings.Builder
		fmt.Fprintf(&b, "INSERT INTO %s (ts, id, type, user_id, provider, space, cause, delta, month, shard, pos) VALUES ", sql.QuotedTable(r.DB.Database, "usage"))
		for i, w := range some {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "(fromUnixTimestamp64Milli(%d, 'UTC'), '%s', %s, %s, %s, %s, %s, %d, %d, %d, %d)", w.ms, w.id,
				sql.QuoteText(w.meter), sql.QuoteText(w.customer), sql.QuoteText(w.provider), sql.QuoteText(w.space), sql.QuoteText(w.cause), w.delta, uint32(ref.Month), uint64(ref.ID), r.Pos[ref])
		}
		r.Exec(b.String())
	}
}

// sum brings a shard's sums up to its head.
func (r *rig) sum(ref schemas.ShardRef) {
	r.T.Helper()
	at, err := derived.Of(r.DB).Summed(r.T.Context(), "usage")
	if err == nil && at[ref.ID] < r.Pos[ref] {
		err = derived.Of(r.DB).FillSums(r.T.Context(), &r.Topic, ref, at[ref.ID], r.Pos[ref], 0)
	}
	if err != nil {
		r.T.Fatal(err)
	}
}

// derive examines and sums all shards.
func (r *rig) derive() {
	r.T.Helper()
	refs := r.Shards()
	for _, ref := range refs {
		r.Examine(ref)
	}
	for _, ref := range refs {
		r.sum(ref)
	}
}

func (r *rig) report(req Request) *Report {
	r.T.Helper()
	req.Topic = "usage"
	rep, err := r.read.Report(r.T.Context(), req)
	if err != nil {
		r.T.Fatal(err)
	}
	return rep
}

// one is the only bill of a request.
func (r *rig) one(req Request) Bill {
	r.T.Helper()
	rep := r.report(req)
	if len(rep.Bills) != 1 {
		r.T.Fatalf("%d bills: %+v", len(rep.Bills), rep.Bills)
	}
	return rep.Bills[0]
}

// sizes are what a request for an instant answers: size, causes and repeats, after the space where there is one for each.
func (r *rig) sizes(q SizeRequest) (out string) {
	r.T.Helper()
	q.Topic = "usage"
	err := r.read.Sizes(r.T.Context(), q, func(s Size) error {
		if q.GroupBy == BySpace {
			out += s.Space + " "
		}
		out += fmt.Sprintf("%s %d %d; ", s.Size, s.Causes, s.Repeats)
		if s.Anomaly != strings.HasPrefix(s.Size, "-") || !s.At.Equal(q.At.Truncate(time.Millisecond)) {
			r.T.Errorf("%+v of %s", s, q.At)
		}
		return nil
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return out
}

func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return v.UTC()
}
