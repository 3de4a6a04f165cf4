package shardtest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Rig is SHARDS, with one shard filled by hand, and a database.
type Rig struct {
	T        *testing.T
	Servers  *embeddedtest.Servers
	Registry *registry.Registry
	DB       *tables.DB
	Topic    schemas.Topic
	Shard    registry.Shard // the one that Add fills
	Tail     schemas.Placed // its last frame
	Last     []byte         // and its payload
}

// Month is the shard's.
const Month = schemas.Month(202611)

// Began is when the shard was made.
var Began = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// New starts servers with the topic app and one active shard.
func New(t *testing.T) *Rig {
	t.Helper()
	r := &Rig{T: t, Servers: embeddedtest.Start(t), Topic: schemas.NewTopic("app")}
	var err error
	if r.Registry, err = registry.Setup(t.Context(), r.Servers.NC(), schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 256 << 20, RegistryBytes: 8 << 20, Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Registry.Apply(t.Context(), r.Topic, false); err != nil {
		t.Fatal(err)
	}
	if r.DB, err = tables.Open(r.Servers.HTTPDSN()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.DB.Close() })
	if r.Shard, err = r.Registry.Place(t.Context(), &r.Topic, Month, 0, registry.Point{}, Began); err != nil {
		t.Fatal(err)
	}
	return r
}

// Add publishes the shard's next frame; change may spoil it.
func (r *Rig) Add(rows int, change func(*schemas.Placed)) {
	r.T.Helper()
	b := frame.NewBuilder(&r.Topic)
	for i := range rows {
		e := schemas.Event{Message: fmt.Sprint(r.Tail.ShardRows + uint64(i)), UserID: "u"}
		b.Append(&e, Began.UnixNano()+int64(i), schemas.NewID(Began.UnixNano()))
	}
	f, payload := b.Encode()
	p := schemas.Placed{Frame: f, Pos: r.Tail.Pos + 1, Prev: schemas.Digest(r.Last), ShardRows: r.Tail.ShardRows + uint64(rows), ShardBytes: r.Tail.ShardBytes + uint64(len(payload)), SourceSeq: r.Tail.Pos + 1}
	if change != nil {
		change(&p)
	}
	msg := nats.NewMsg(schemas.ShardSubject("app", Month, r.Shard.ID))
	p.SetHeaders(msg.Header)
	msg.Data = bytes.Clone(payload)
	if _, err := r.Registry.JetStream().PublishMsg(r.T.Context(), msg); err != nil {
		r.T.Fatal(err)
	}
	r.Tail, r.Last = p, msg.Data
}

// Rows counts the rows and ids that are stored, and their highest position.
func (r *Rig) Rows() (rows, ids, head uint64) {
	r.T.Helper()
	q := "SELECT count(), uniqExact(id), max(pos) FROM " + sql.QuotedTable(r.Servers.Database, "app")
	if err := r.DB.Conn().QueryRow(r.T.Context(), q).Scan(&rows, &ids, &head); err != nil {
		r.T.Fatal(err)
	}
	return rows, ids, head
}

// Eventually waits until the shard is stored up to a position.
func (r *Rig) Eventually(want uint64) {
	r.T.Helper()
	embeddedtest.Eventually(r.T, 2*time.Minute, func() error {
		head, err := r.DB.Head(r.T.Context(), schemas.ShardRef{Topic: "app", Month: Month, ID: r.Shard.ID})
		if err == nil && head != want {
			err = fmt.Errorf("head is %d, want %d", head, want)
		}
		return err
	})
}
