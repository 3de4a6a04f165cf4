package oncetest

import (
	"cmp"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/rollups"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// Rig is a topic with its tables, and readers over them.
type Rig struct {
	T     testing.TB
	DB    *tables.DB
	Reg   *registry.Registry
	Topic schemas.Topic
	Query *query.Reader
	// Pos is the head of each shard.
	Pos map[schemas.ShardRef]uint64
}

// New makes a topic and its tables.
func New(t testing.TB, declared schemas.Topic) *Rig {
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
	return &Rig{T: t, DB: db, Reg: reg, Topic: topic, Query: q, Pos: map[schemas.ShardRef]uint64{}}
}

// Next takes the next position of a shard; some are left out.
func (r *Rig) Next(ref schemas.ShardRef) uint64 {
	r.Pos[ref] += 1 + uint64(rand.IntN(3))
	return r.Pos[ref]
}

// Exec runs a statement.
func (r *Rig) Exec(sql string) {
	r.T.Helper()
	if err := r.DB.Conn().Exec(r.T.Context(), sql); err != nil {
		r.T.Fatal(err)
	}
}

// Examine looks for repeats in a shard up to its head.
func (r *Rig) Examine(ref schemas.ShardRef) {
	r.T.Helper()
	d, err := derived.Of(r.DB).State(r.T.Context(), &r.Topic)
	if err == nil {
		err = derived.Of(r.DB).ExamineRepeats(r.T.Context(), &r.Topic, ref, d.Shards[ref].Epoch, d.Shards[ref].Examined, r.Pos[ref])
	}
	if err != nil {
		r.T.Fatal(err)
	}
}

// Round lets rollups do all there is to do.
func (r *Rig) Round() {
	r.T.Helper()
	u, err := rollups.New(rollups.Config{Registry: r.Reg, DB: r.DB, Hooks: rollups.Hooks{Fault: func(ref schemas.ShardRef, err error) { r.T.Errorf("%s: %v", ref, err) }}})
	if err != nil {
		r.T.Fatal(err)
	}
	for more := true; more; {
		if more, err = u.Round(r.T.Context()); err != nil {
			r.T.Fatal(err)
		}
	}
}

// Shards lists the shards that have rows.
func (r *Rig) Shards() (refs []schemas.ShardRef) {
	for ref := range r.Pos {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b schemas.ShardRef) int { return cmp.Or(cmp.Compare(a.Month, b.Month), cmp.Compare(a.ID, b.ID)) })
	return refs
}
