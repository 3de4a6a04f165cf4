package sinks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/embedded/embeddedtest"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

const november = schemas.Month(202611)

// rig is SHARDS, filled by hand, and a database.
type rig struct {
	t     *testing.T
	srv   *embeddedtest.Servers
	reg   *registry.Registry
	db    *tables.DB
	topic schemas.Topic
	shard registry.Shard
	tail  schemas.Placed
	last  []byte
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, srv: embeddedtest.Start(t), topic: schemas.NewTopic("app")}
	var err error
	if r.reg, err = registry.Setup(t.Context(), r.srv.NC(), schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 256 << 20, RegistryBytes: 8 << 20, Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.reg.Apply(t.Context(), r.topic, false); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(r.srv.ClickHouseHTTP)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword(r.srv.User, r.srv.Password), r.srv.Database
	if r.db, err = tables.Open(u.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.db.Close() })
	if r.shard, err = r.reg.Place(t.Context(), &r.topic, november, 0, t0); err != nil {
		t.Fatal(err)
	}
	return r
}

// add publishes the shard's next frame; change may spoil it.
func (r *rig) add(rows int, change func(*schemas.Placed)) {
	r.t.Helper()
	b := schemas.NewFrameBuilder(&r.topic)
	for i := range rows {
		e := schemas.Event{Message: fmt.Sprint(r.tail.ShardRows + uint64(i)), UserID: "u"}
		b.Append(&e, t0.UnixNano()+int64(i), schemas.NewID(t0.UnixNano()))
	}
	f, payload := b.Encode()
	p := schemas.Placed{Frame: f, Pos: r.tail.Pos + 1, Prev: schemas.Digest(r.last), ShardRows: r.tail.ShardRows + uint64(rows), ShardBytes: r.tail.ShardBytes + uint64(len(payload)), SourceSeq: r.tail.Pos + 1}
	if change != nil {
		change(&p)
	}
	msg := nats.NewMsg(schemas.ShardSubject("app", november, r.shard.ID))
	p.SetHeaders(msg.Header)
	msg.Data = bytes.Clone(payload)
	if _, err := r.reg.JetStream().PublishMsg(r.t.Context(), msg); err != nil {
		r.t.Fatal(err)
	}
	r.tail, r.last = p, msg.Data
}

// patience is how long anything may take on a busy machine.
const patience = 2 * time.Minute

func (r *rig) run(change func(*Config)) (stop func()) {
	r.t.Helper()
	cfg := Config{Registry: r.reg, DB: r.db, Linger: 20 * time.Millisecond, Housekeeping: 100 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	s, err := New(r.t.Context(), r.srv.NC(), cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = s.Run(ctx); close(done) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	r.t.Cleanup(stop)
	return stop
}

func (r *rig) rows() (rows, ids, head uint64) {
	r.t.Helper()
	q := "SELECT count(), uniqExact(id), max(pos) FROM " + schemas.QuotedTable(r.srv.Database, "app")
	if err := r.db.Conn().QueryRow(r.t.Context(), q).Scan(&rows, &ids, &head); err != nil {
		r.t.Fatal(err)
	}
	return rows, ids, head
}

func (r *rig) eventually(want uint64) {
	r.t.Helper()
	embeddedtest.Eventually(r.t, patience, func() error {
		head, err := r.db.Head(r.t.Context(), "app", november, r.shard.ID)
		if err == nil && head != want {
			err = fmt.Errorf("head is %d, want %d", head, want)
		}
		return err
	})
}

// A sink that starts anywhere goes on from the head, and a batch is one part.
func TestSinkResumesAtTheHead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 30 {
		r.add(100, nil)
	}
	stop := r.run(func(c *Config) { c.BatchRows = 1000 })
	r.eventually(30)
	stop()
	for range 25 {
		r.add(100, nil)
	}
	r.run(func(c *Config) { c.BatchRows = 1000 })
	r.eventually(55)
	if rows, ids, _ := r.rows(); rows != 5500 || ids != 5500 {
		t.Errorf("%d rows, %d ids, want 5500", rows, ids)
	}
	var positions, parts uint64
	q := fmt.Sprintf("SELECT uniqExact(pos), (SELECT count() FROM system.parts WHERE database = '%s' AND table = 'app' AND level = 0) FROM %s", r.srv.Database, schemas.QuotedTable(r.srv.Database, "app"))
	if err := r.db.Conn().QueryRow(t.Context(), q).Scan(&positions, &parts); err != nil {
		t.Fatal(err)
	}
	if positions > 8 {
		t.Errorf("%d inserts for 5,500 rows in batches of 1,000", positions)
	}
}

// A gap stops the shard, names the range, and stores nothing behind it.
func TestSinkStopsAtAGap(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(10, nil)
	r.add(10, nil)
	faults := make(chan error, 100)
	r.run(func(c *Config) {
		c.Hooks.Fault = func(_ schemas.ShardRef, err error) {
			select {
			case faults <- err:
			default:
			}
		}
	})
	r.eventually(2)
	r.add(10, func(p *schemas.Placed) { p.Pos = 5 })
	select {
	case err := <-faults:
		if !errors.Is(err, ErrGap) {
			t.Errorf("fault %v, want a gap", err)
		}
	case <-time.After(patience):
		t.Fatal("the gap was not reported")
	}
	if rows, _, head := r.rows(); rows != 20 || head != 2 {
		t.Errorf("%d rows up to %d, want 20 up to 2", rows, head)
	}
}

// A burnt token: an insert is answered OK and stores nothing, because its token
// is in the deduplication log without its rows. The sink finds out by the head
// and tries the next token. The token is burnt here as a crash does it: it is
// recorded by an insert whose rows are not visible in the shard afterwards.
func TestSinkOutlivesABurntToken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(10, nil)
	if err := r.db.Ensure(t.Context(), &r.topic); err != nil {
		t.Fatal(err)
	}
	in := &tables.Insert{Topic: &r.topic, Schema: 1, Month: november, Shard: r.shard.ID, Last: 1, Frames: [][]byte{r.last}}
	for ; in.Attempt < 2; in.Attempt++ {
		if err := r.db.Insert(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		// Moving the partition away leaves its tokens behind.
		for _, q := range []string{
			"CREATE TABLE IF NOT EXISTS " + schemas.QuotedTable(r.srv.Database, "away") + " AS " + schemas.QuotedTable(r.srv.Database, "app"),
			fmt.Sprintf("ALTER TABLE %s MOVE PARTITION ID '%s' TO TABLE %s", schemas.QuotedTable(r.srv.Database, "app"), schemas.PartitionID(november, r.shard.ID), schemas.QuotedTable(r.srv.Database, "away")),
		} {
			if err := r.db.Conn().Exec(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rows, _, _ := r.rows(); rows != 0 {
		t.Fatalf("%d rows are left, the tokens are not burnt", rows)
	}
	var burnt atomic.Int32
	r.run(func(c *Config) { c.Hooks.Burnt = func(schemas.ShardRef, uint64, int) { burnt.Add(1) } })
	r.eventually(1)
	if rows, ids, _ := r.rows(); rows != 10 || ids != 10 {
		t.Errorf("%d rows, %d ids, want 10", rows, ids)
	}
	if burnt.Load() != 2 {
		t.Errorf("%d burnt tokens were met, want 2: the test does not bite", burnt.Load())
	}
}

// A sealed shard is closed once it is stored whole, with exact numbers, and becomes
// one part.
func TestSinkClosesSealedShards(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(10, nil)
	r.add(15, nil)
	if _, err := r.reg.Rotate(t.Context(), r.shard, "rows", t0); err != nil {
		t.Fatal(err)
	}
	if err := r.reg.Seal(t.Context(), "app", november, r.shard.ID, 2, 999, 999); err != nil {
		t.Fatal(err)
	}
	r.run(func(c *Config) { c.BatchRows = 10 })
	embeddedtest.Eventually(t, patience, func() error {
		s, err := r.reg.Shard(t.Context(), "app", november, r.shard.ID)
		if err == nil && (s.Status != registry.Closed || s.Rows != 25 || s.MinTs != t0.UnixNano() || s.MaxTs != t0.UnixNano()+14) {
			err = fmt.Errorf("not closed exactly: %+v", s)
		}
		return err
	})
	embeddedtest.Eventually(t, patience, func() error {
		var parts, made uint64
		q := fmt.Sprintf("SELECT countIf(active), countIf(level = 0) FROM system.parts WHERE database = '%s' AND table = 'app'", r.srv.Database)
		err := r.db.Conn().QueryRow(t.Context(), q).Scan(&parts, &made)
		if err == nil && (parts != 1 || made != 2) {
			err = fmt.Errorf("%d parts, made by %d inserts, want 1 and 2", parts, made)
		}
		return err
	})
	if rows, ids, head := r.rows(); rows != 25 || ids != 25 || head != 2 {
		t.Errorf("%d rows, %d ids up to %d, want 25 up to 2", rows, ids, head)
	}
}
