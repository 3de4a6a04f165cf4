package retention

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/integration/shardtest"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
	"github.com/almanac-events/almanac/sinks"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

const november = shardtest.Month

var t0 = shardtest.Began

// rig is a shard filled by hand, which sinks store and the janitor clears.
type rig struct{ *shardtest.Rig }

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{shardtest.New(t)}
}

// sinks runs sinks.
func (r *rig) sinks() (stop func()) {
	r.T.Helper()
	s, err := sinks.New(r.T.Context(), r.Servers.NC(), sinks.Config{Registry: r.Registry, DB: r.DB, Linger: 20 * time.Millisecond, Housekeeping: 100 * time.Millisecond})
	if err != nil {
		r.T.Fatal(err)
	}
	return r.background(s.Run)
}

// background runs a part until it is stopped, at the test's end at the latest.
func (r *rig) background(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = run(ctx); close(done) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	r.T.Cleanup(stop)
	return stop
}

// closed fills the rig's shard, lets a sink store and close it, and goes on with
// the lane's next. It returns the closed shard and its first frame.
func (r *rig) closed(frames int) (registry.Shard, []byte) {
	r.T.Helper()
	var first []byte
	for i := range frames {
		if r.Add(10, nil); i == 0 {
			first = r.Last
		}
	}
	next, err := r.Registry.Rotate(r.T.Context(), r.Shard, "rows", registry.Point{}, t0)
	if err != nil {
		r.T.Fatal(err)
	}
	if err := r.Registry.Seal(r.T.Context(), r.Shard.Ref(), registry.Point{}, uint64(frames), r.Tail.ShardRows, r.Tail.ShardBytes); err != nil {
		r.T.Fatal(err)
	}
	stop := r.sinks()
	defer stop()
	var s registry.Shard
	embeddedtest.Eventually(r.T, time.Minute, func() error {
		if s, err = r.Registry.Shard(r.T.Context(), r.Shard.Ref()); err == nil && s.Status != registry.Closed {
			err = fmt.Errorf("still %s", s.Status)
		}
		return err
	})
	r.Shard, r.Tail, r.Last = next, schemas.Placed{}, nil
	return s, first
}

func (r *rig) entry(s registry.Shard) registry.Shard {
	r.T.Helper()
	s, err := r.Registry.Shard(r.T.Context(), s.Ref())
	if err != nil {
		r.T.Fatal(err)
	}
	return s
}

// retain is one round of retention at a time, by a janitor of its own that dies at
// a point, if one is given. It says whether it died there.
func (r *rig) retain(at time.Time, point string, change func(*Config)) (died bool) {
	r.T.Helper()
	died, err := r.round(at, point, change)
	if err != nil {
		r.T.Error(err)
	}
	return died
}

// round is retain, and returns what the round says.
func (r *rig) round(at time.Time, point string, change func(*Config)) (died bool, err error) {
	r.T.Helper()
	cfg := Config{Registry: r.Registry, DB: r.DB, ReplayWindow: 100 * 365 * 24 * time.Hour, Now: func() time.Time { return at }, Crash: func(p string) {
		if p == point {
			panic(p)
		}
	}}
	if change != nil {
		change(&cfg)
	}
	j, err := New(r.T.Context(), r.Servers.NC(), cfg)
	if err != nil {
		r.T.Fatal(err)
	}
	defer func() {
		if p := recover(); p != nil {
			died = p == any(point)
		}
	}()
	return false, j.Round(r.T.Context())
}

func (r *rig) keeps(keepDays int, a schemas.Anonymise) {
	r.T.Helper()
	r.Topic.KeepDays, r.Topic.Anonymise = keepDays, a
	if _, _, err := r.Registry.Apply(r.T.Context(), r.Topic, false); err != nil {
		r.T.Fatal(err)
	}
}

// inStream is what SHARDS holds of a shard.
func (r *rig) inStream(s registry.Shard) (msgs []*streams.Message) {
	r.T.Helper()
	err := streams.Gather(r.T.Context(), r.Registry.JetStream(), schemas.StreamShards, schemas.ShardSubject("app", november, s.ID), 1, nil, func(m *streams.Message) (bool, error) {
		msgs = append(msgs, m)
		return true, nil
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return msgs
}

// gone checks that nothing of a shard is left but its mark.
func (r *rig) gone(s registry.Shard, frames uint64) {
	r.T.Helper()
	if head, rows, err := r.DB.HeadRows(r.T.Context(), s.Ref()); err != nil || rows != 0 {
		r.T.Errorf("ClickHouse has %d rows up to %d (%v)", rows, head, err)
	}
	e := r.entry(s)
	if e.Status != registry.Dropped || e.Floor != frames || e.DroppedRows != 10*frames || e.DropReason != "kept 30 days" {
		r.T.Errorf("the entry is %+v", e)
	}
	msgs := r.inStream(s)
	if len(msgs) != 1 || len(msgs[0].Data) != 0 {
		r.T.Fatalf("SHARDS has %d messages of it", len(msgs))
	}
	p, err := schemas.ParsePlaced(msgs[0].Header)
	if err != nil || p.Pos != frames || p.ShardRows != 10*frames || p.Cleared != schemas.ClearedDropped {
		r.T.Errorf("the mark is %+v (%v)", p, err)
	}
}

// A shard past its retention goes whole, however often the janitor dies on the way,
// and nothing brings it back: not a sink that starts, not one that slept over it.
func TestRetentionDrops(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.keeps(30, schemas.Anonymise{})
	s, first := r.closed(3)
	_, due := s.Due(&r.Topic)
	r.retain(due, "", nil)
	if e := r.entry(s); e.Status != registry.Closed || len(r.inStream(s)) != 3 {
		t.Fatalf("not a moment too soon: %+v", e)
	}
	for _, point := range []string{"janitor.before-mark", "janitor.after-mark", "janitor.before-mark-frames", "janitor.after-mark-frames", "janitor.before-drop", "janitor.after-drop"} {
		if !r.retain(due.Add(1), point, nil) {
			t.Fatalf("it did not come by %s", point)
		}
	}
	if e := r.entry(s); e.Status != registry.Dropping {
		t.Errorf("half dropped it is %s", e.Status)
	}
	var dropped uint64
	r.keeps(0, schemas.Anonymise{}) // what is begun is ended
	r.retain(due.Add(2), "", func(c *Config) { c.Hooks.Dropped = func(_ schemas.ShardRef, rows uint64, _ string) { dropped += rows } })
	r.gone(s, 3)
	if dropped != 30 {
		t.Errorf("%d rows were reported dropped, want 30", dropped)
	}

	// A sink starts: the floor stands, though the table says that nothing is stored.
	r.Add(10, nil)
	stop := r.sinks()
	r.Eventually(1)
	stop()
	r.gone(s, 3)
	// A sink that read the head before the drop stores its frames after it.
	if err := r.DB.Insert(t.Context(), &tables.Insert{Topic: &r.Topic, Schema: 1, Month: november, Shard: s.ID, Frames: []tables.Frame{{Pos: 1, Rows: 10, Payload: first}}}); err != nil {
		t.Fatal(err)
	}
	if rows, _, _ := r.Rows(); rows != 20 {
		t.Fatalf("%d rows, want 20: the test does not bite", rows)
	}
	var faults []error
	r.retain(due.Add(3), "", func(c *Config) { c.Hooks.Fault = func(_ schemas.ShardRef, err error) { faults = append(faults, err) } })
	if len(faults) != 1 || !errors.Is(faults[0], ErrCameBack) {
		t.Errorf("faults: %v", faults)
	}
	r.gone(s, 3)
	if rows, _, _ := r.Rows(); rows != 10 {
		t.Errorf("%d rows, want the other shard's 10", rows)
	}
}

// waitsForErasure expects that no field is cleared by which an erasure that has not taken its rows may know them, and
// that one which was left alone is named.
func (r *rig) waitsForErasure(due time.Time, users func() uint64) {
	r.T.Helper()
	x, err := r.Registry.Enter(r.T.Context(), ledger.Erasure{ID: "e-1", Topic: "app", Cond: "`user_id` = 'u-7'", To: math.MaxInt64, State: ledger.Waiting, CreatedAt: due})
	if err != nil {
		r.T.Fatal(err)
	}
	for _, state := range []ledger.State{ledger.Waiting, ledger.Erasing, ledger.Erased} {
		amended, err := r.Registry.AmendErasure(r.T.Context(), "app", x.ID, func(e *ledger.Erasure) bool {
			e.State = state
			return true
		})
		if err != nil || amended.State != state {
			r.T.Fatal(amended.State, err)
		}
		if state == ledger.Erased {
			return
		}
		if r.retain(due.Add(1), "", nil); users() != 20 {
			r.T.Fatalf("an erasure is %s, and only %d events have a user", state, users())
		}
		if _, err := r.round(due.Add(time.Hour), "", nil); err == nil || !strings.Contains(err.Error(), "almanac erase resume "+x.ID) || users() != 20 {
			r.T.Errorf("an erasure is %s for an hour, %d events have a user: %v", state, users(), err)
		}
	}
}

// Fields of a shard past its days are cleared in the table and in the stream,
// however often the janitor dies on the way; the rest stays. Once.
func TestRetentionAnonymises(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.keeps(30, schemas.Anonymise{AfterDays: 7, Fields: []string{"user_id"}})
	s, _ := r.closed(2)
	users := func() (n uint64) {
		t.Helper()
		q := "SELECT countIf(user_id != '') FROM " + sql.QuotedTable(r.Servers.Database, "app") + " SETTINGS apply_patch_parts = 0"
		if err := r.DB.Conn().QueryRow(t.Context(), q).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	due, drop := s.Due(&r.Topic)
	if r.retain(due, "", nil); users() != 20 {
		t.Fatalf("too soon: %d events have a user", users())
	}
	r.waitsForErasure(due, users)
	for _, point := range []string{"janitor.before-clear", "janitor.after-clear", "janitor.before-mark-frames", "janitor.after-mark-frames", "janitor.before-anonymised"} {
		if !r.retain(due.Add(1), point, nil) {
			t.Fatalf("it did not come by %s", point)
		}
	}
	times := 0
	count := func(c *Config) { c.Hooks.Anonymised = func(schemas.ShardRef, []string) { times++ } }
	r.retain(due.Add(2), "", count)
	r.retain(due.Add(3), "", count)
	e := r.entry(s)
	if times != 1 || !e.AnonymisedFor(&r.Topic) || !e.AnonymisedAt.Equal(due.Add(2)) || e.Status != registry.Closed {
		t.Errorf("%d times, the entry is %+v", times, e)
	}
	if rows, ids, head := r.Rows(); rows != 20 || ids != 20 || head != 2 || users() != 0 {
		t.Errorf("%d rows, %d ids up to %d, %d with a user; want 20, 20, 2, 0", rows, ids, head, users())
	}
	msgs := r.inStream(s)
	if len(msgs) != 1 || len(msgs[0].Data) != 0 || msgs[0].Header.Get(schemas.HeaderCleared) != schemas.ClearedAnonymised {
		t.Errorf("SHARDS has %d messages of it", len(msgs))
	}
	// Later it is dropped, and the mark says so.
	r.retain(drop.Add(1), "", nil)
	r.gone(s, 2)
}

// Four janitors at once, none of which knows of the others.
func TestRetentionByMany(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.keeps(30, schemas.Anonymise{AfterDays: 7, Fields: []string{"user_id"}})
	s, _ := r.closed(2)
	anonymise, drop := s.Due(&r.Topic)
	many := func(at time.Time) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := r.round(at, "", nil); err != nil && !errors.Is(err, registry.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		r.retain(at, "", nil) // what stayed because another was at it
	}
	many(anonymise.Add(1))
	if rows, _, _ := r.Rows(); rows != 20 || len(r.entry(s).Anonymised) != 1 || len(r.inStream(s)) != 1 {
		t.Errorf("anonymised: %d rows, %d messages, %+v", rows, len(r.inStream(s)), r.entry(s))
	}
	many(drop.Add(1))
	r.gone(s, 2)
}

// The whole janitor at work: an active shard that is past is retired, no router seals
// it here, and a young one is left alone.
func TestRetentionRetires(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.keeps(30, schemas.Anonymise{})
	r.Add(10, nil)
	// The clock of the janitor runs: a year on.
	j, err := New(t.Context(), r.Servers.NC(), Config{Registry: r.Registry, DB: r.DB, Every: 100 * time.Millisecond, Now: func() time.Time { return t0.AddDate(1, 0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	r.background(j.Run)
	embeddedtest.Eventually(t, time.Minute, func() error {
		h, err := r.Registry.Head(context.WithoutCancel(t.Context()), "app", november)
		if err == nil && (len(h.Active) != 0 || h.Retired[r.Shard.ID] != 0 || len(h.Retired) != 1) {
			err = fmt.Errorf("the head entry is %+v", h)
		}
		return err
	})
	if e := r.entry(r.Shard); e.Status != registry.Active || e.Reason != "retention" {
		t.Errorf("retired: %+v", e)
	}
}

// A shard stays when something drops what is derived from it after its sums were seen to be
// complete: without the rows they could not be filled again. The next round drops it.
func TestRetentionWaitsForWhatIsDerived(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.keeps(30, schemas.Anonymise{})
	s, _ := r.closed(2)
	_, due := s.Due(&r.Topic)
	j, err := New(t.Context(), r.Servers.NC(), Config{Registry: r.Registry, DB: r.DB, Now: func() time.Time { return due.Add(1) }, Crash: func(point string) {
		if point == "janitor.derived" {
			if err := r.Registry.DerivedDropper("app").While(t.Context(), func(context.Context, map[schemas.ShardRef]bool) error { return nil }); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	err = j.Round(t.Context())
	if rows, _, _ := r.Rows(); !errors.Is(err, registry.ErrConflict) || r.entry(s).Status != registry.Closed || rows != 20 {
		t.Errorf("%d rows, %v, %+v", rows, err, r.entry(s))
	}
	dropped := uint64(0)
	r.retain(due.Add(2), "", func(c *Config) { c.Hooks.Dropped = func(_ schemas.ShardRef, rows uint64, _ string) { dropped += rows } })
	if r.gone(s, 2); dropped != 20 {
		t.Errorf("%d rows were reported dropped, want 20", dropped)
	}
}
