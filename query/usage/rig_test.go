package usage

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/embedded/embeddedtest"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/tables"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// rig is a topic of kind meter whose table is filled by hand.
type rig struct {
	t     *testing.T
	db    *tables.DB
	reg   *registry.Registry
	topic schemas.Topic
	read  *Reader
	next  int
	pos   map[schemas.ShardRef]uint64
	all   []row // of the property
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOf(t, schemas.Topic{Name: "usage", Kind: kinds.Meter})
}

// newRigOf is newRig with options of the topic.
func newRigOf(t *testing.T, declared schemas.Topic) *rig {
	t.Helper()
	srv := embeddedtest.Start(t)
	reg, err := registry.Setup(t.Context(), srv.NC(), schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 64 << 20, RegistryBytes: 8 << 20, Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	topic, err := declared.Declared()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := reg.Apply(t.Context(), topic, false); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(srv.ClickHouseHTTP)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword(srv.User, srv.Password), srv.Database
	db, err := tables.Open(u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	q, err := query.New(srv.NC(), reg, db)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, db: db, reg: reg, topic: topic, read: New(q), pos: map[schemas.ShardRef]uint64{}}
}

// row is a diff as it is stored; shard tells shards of its month apart.
type row struct {
	meter, provider, space, cause, customer string
	delta                                   int64
	ms                                      int64
	shard                                   uint64
	id                                      string
}

func (r row) ref() schemas.ShardRef {
	return schemas.ShardRef{Topic: "usage", Month: schemas.MonthOf(r.ms * 1e6), ID: schemas.Shard(uint64(schemas.MonthOf(r.ms*1e6))*10 + r.shard)}
}

// insert stores rows, each shard's as one insert.
func (r *rig) insert(rows ...row) {
	r.t.Helper()
	byShard := map[schemas.ShardRef][]row{}
	for _, w := range rows {
		r.next++ // ids are in the order of arrival, as a producer's are
		if w.id == "" {
			w.id = fmt.Sprintf("00000000-0000-7000-8000-%012x", r.next)
		}
		byShard[w.ref()] = append(byShard[w.ref()], w)
	}
	for ref, some := range byShard {
		r.pos[ref] += 1 + uint64(rand.IntN(3))
		var b strings.Builder
		fmt.Fprintf(&b, "INSERT INTO %s (ts, id, type, user_id, provider, space, cause, delta, month, shard, pos) VALUES ", schemas.QuotedTable(r.db.Database, "usage"))
		for i, w := range some {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "(fromUnixTimestamp64Milli(%d, 'UTC'), '%s', %s, %s, %s, %s, %s, %d, %d, %d, %d)", w.ms, w.id,
				schemas.QuoteText(w.meter), schemas.QuoteText(w.customer), schemas.QuoteText(w.provider), schemas.QuoteText(w.space), schemas.QuoteText(w.cause), w.delta, uint32(ref.Month), uint64(ref.ID), r.pos[ref])
		}
		r.exec(b.String())
	}
}

func (r *rig) exec(sql string) {
	r.t.Helper()
	if err := r.db.Conn().Exec(r.t.Context(), sql); err != nil {
		r.t.Fatal(err)
	}
}

// examine and sum bring the derived tables of a shard up to its head.
func (r *rig) examine(ref schemas.ShardRef) {
	r.t.Helper()
	d, err := r.db.Derived(r.t.Context(), &r.topic)
	if err == nil {
		err = r.db.ExamineRepeats(r.t.Context(), &r.topic, ref, d.Shards[ref].Epoch, d.Shards[ref].Examined, r.pos[ref])
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) sum(ref schemas.ShardRef) {
	r.t.Helper()
	at, err := r.db.Summed(r.t.Context(), "usage")
	if err == nil && at[ref.ID] < r.pos[ref] {
		err = r.db.FillSums(r.t.Context(), &r.topic, ref, at[ref.ID], r.pos[ref], 0)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// derive examines and sums all shards.
func (r *rig) derive() {
	r.t.Helper()
	refs := r.shards()
	for _, ref := range refs {
		r.examine(ref)
	}
	for _, ref := range refs {
		r.sum(ref)
	}
}

func (r *rig) shards() (refs []schemas.ShardRef) {
	for ref := range r.pos {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b schemas.ShardRef) int { return cmp.Or(cmp.Compare(a.Month, b.Month), cmp.Compare(a.ID, b.ID)) })
	return refs
}

func (r *rig) report(req Request) *Report {
	r.t.Helper()
	req.Topic = "usage"
	rep, err := r.read.Report(r.t.Context(), req)
	if err != nil {
		r.t.Fatal(err)
	}
	return rep
}

// one is the only bill of a request.
func (r *rig) one(req Request) Bill {
	r.t.Helper()
	rep := r.report(req)
	if len(rep.Bills) != 1 {
		r.t.Fatalf("%d bills: %+v", len(rep.Bills), rep.Bills)
	}
	return rep.Bills[0]
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return v.UTC()
}
