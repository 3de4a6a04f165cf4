package sinks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/integration/shardtest"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

const november = shardtest.Month

// rig is a shard filled by hand, and sinks that store it.
type rig struct{ *shardtest.Rig }

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{shardtest.New(t)}
}

// maxQueueWait is how long anything may take on a busy machine.
const maxQueueWait = 2 * time.Minute

func (r *rig) run(change func(*Config)) (stop func()) {
	r.T.Helper()
	cfg := Config{Registry: r.Registry, DB: r.DB, Linger: 20 * time.Millisecond, Housekeeping: 100 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	s, err := New(r.T.Context(), r.Servers.NC(), cfg)
	if err != nil {
		r.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = s.Run(ctx); close(done) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	r.T.Cleanup(stop)
	return stop
}

// A sink that starts anywhere goes on from the head, and a batch is one part.
func TestSinkResumesAtTheHead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 30 {
		r.Add(100, nil)
	}
	stop := r.run(func(c *Config) { c.BatchRows = 1000 })
	r.Eventually(30)
	stop()
	for range 25 {
		r.Add(100, nil)
	}
	var inserts atomic.Int32
	r.run(func(c *Config) {
		c.BatchRows = 1000
		c.Hooks.Stored = func(schemas.ShardRef, uint64, uint64, time.Duration) { inserts.Add(1) }
	})
	r.Eventually(55)
	if rows, ids, _ := r.Rows(); rows != 5500 || ids != 5500 {
		t.Errorf("%d rows, %d ids, want 5500", rows, ids)
	}
	if n := inserts.Load(); n > 5 {
		t.Errorf("%d inserts for 2,500 rows in batches of 1,000", n)
	}
}

// A gap stops the shard, names the range, and stores nothing behind it.
func TestSinkStopsAtAGap(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Add(10, nil)
	r.Add(10, nil)
	faults := make(chan error, 100)
	r.run(func(c *Config) {
		c.Hooks.Fault = func(_ schemas.ShardRef, err error) {
			select {
			case faults <- err:
			default:
			}
		}
	})
	r.Eventually(2)
	r.Add(10, func(p *schemas.Placed) { p.Pos = 5 })
	for late, found := time.After(maxQueueWait), false; !found; {
		select {
		case err := <-faults: // of a slow server others may come first
			found = errors.Is(err, ErrGap)
		case <-late:
			t.Fatal("the gap was not reported")
		}
	}
	if rows, _, head := r.Rows(); rows != 20 || head != 2 {
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
	r.Add(10, nil)
	if err := r.DB.Ensure(t.Context(), &r.Topic); err != nil {
		t.Fatal(err)
	}
	in := &tables.Insert{Topic: &r.Topic, Schema: 1, Month: november, Shard: r.Shard.ID, Frames: []tables.Frame{{Pos: 1, Rows: 10, Payload: r.Last}}}
	for ; in.Attempt < 2; in.Attempt++ {
		if err := r.DB.Insert(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		// Moving the partition away leaves its tokens behind.
		for _, q := range []string{
			"CREATE TABLE IF NOT EXISTS " + sql.QuotedTable(r.Servers.Database, "away") + " AS " + sql.QuotedTable(r.Servers.Database, "app"),
			fmt.Sprintf("ALTER TABLE %s MOVE PARTITION ID '%s' TO TABLE %s", sql.QuotedTable(r.Servers.Database, "app"), schemas.PartitionID(november, r.Shard.ID), sql.QuotedTable(r.Servers.Database, "away")),
		} {
			if err := r.DB.Conn().Exec(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rows, _, _ := r.Rows(); rows != 0 {
		t.Fatalf("%d rows are left, the tokens are not burnt", rows)
	}
	var burnt atomic.Int32
	r.run(func(c *Config) { c.Hooks.Burnt = func(schemas.ShardRef, uint64, int) { burnt.Add(1) } })
	r.Eventually(1)
	if rows, ids, _ := r.Rows(); rows != 10 || ids != 10 {
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
	r.Add(10, nil)
	r.Add(15, nil)
	if _, err := r.Registry.Rotate(t.Context(), r.Shard, "rows", registry.Point{}, t0); err != nil {
		t.Fatal(err)
	}
	if err := r.Registry.Seal(t.Context(), r.Shard.Ref(), registry.Point{}, 2, 999, 999); err != nil {
		t.Fatal(err)
	}
	r.run(func(c *Config) { c.BatchRows = 10 })
	embeddedtest.Eventually(t, maxQueueWait, func() error {
		s, err := r.Registry.Shard(t.Context(), r.Shard.Ref())
		if err == nil && (s.Status != registry.Closed || s.Rows != 25 || s.MinTs != t0.UnixNano() || s.MaxTs != t0.UnixNano()+14) {
			err = fmt.Errorf("not closed exactly: %+v", s)
		}
		return err
	})
	embeddedtest.Eventually(t, maxQueueWait, func() error {
		var parts, made uint64
		q := fmt.Sprintf("SELECT countIf(active), countIf(level = 0) FROM system.parts WHERE database = '%s' AND table = 'app'", r.Servers.Database)
		err := r.DB.Conn().QueryRow(t.Context(), q).Scan(&parts, &made)
		if err == nil && (parts != 1 || made != 2) {
			err = fmt.Errorf("%d parts, made by %d inserts, want 1 and 2", parts, made)
		}
		return err
	})
	if rows, ids, head := r.Rows(); rows != 25 || ids != 25 || head != 2 {
		t.Errorf("%d rows, %d ids up to %d, want 25 up to 2", rows, ids, head)
	}
}
