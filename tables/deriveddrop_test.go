package tables

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// A position that was asserted before what it says was dropped, and is stored after that, does not
// stay: it would say that marks, or series, are there.
func TestLatePosition(t *testing.T) {
	t.Parallel()
	for _, kind := range []schemas.Kind{kinds.Meter, kinds.Metric} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			db, _ := open(t)
			topic := schemas.NewTopicOf(kind, "things")
			ref := schemas.ShardRef{Topic: topic.Name, Month: november, ID: 5}
			err := db.Ensure(t.Context(), &topic)
			if err == nil {
				err = db.Insert(t.Context(), &Insert{Topic: &topic, Schema: 1, Month: ref.Month, Shard: ref.ID, Last: 3, Frames: [][]byte{frameOf(t, &topic, 20)}})
			}
			if err == nil {
				err = db.ExamineRepeats(t.Context(), &topic, ref, 0, 0, 3)
			}
			if err == nil && topic.HasSeries() {
				err = db.FillSeries(t.Context(), &topic, ref, 0, 0, 3)
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := db.Derived(t.Context(), &topic)
			if err != nil || d.Shards[ref].Examined != 3 {
				t.Fatalf("%+v, %v", d, err)
			}
			// Between its assertion and its end there is time.
			late := topic.MarkExamined(db.Database, ref, d.Shards[ref].Epoch, 3, 20, textHeadMoved) + " AND sleep(2) = 0"
			if topic.HasSeries() {
				late = topic.FillSeries(db.Database, ref, 3, 3, 4, textHeadMoved) + " AND sleep(2) = 0"
			}
			stored := make(chan error, 1)
			go func() {
				stored <- db.derive(t.Context(), &topic, ref, "examine:late", late, map[string]string{"insert_deduplicate": "0"})
			}()
			embeddedtest.Eventually(t, time.Minute, func() error {
				var n uint64
				err := db.Conn().QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query_id = '"+derivedPrefix(db.Database, topic.Name)+"examine:late'").Scan(&n)
				if err == nil && n == 0 {
					err = fmt.Errorf("the statement does not run yet")
				}
				return err
			})
			if err := db.dropAllOf(t.Context(), topic.Name, []schemas.ShardRef{ref}, &retained{}); err != nil {
				t.Fatal(err)
			}
			if err := <-stored; err != nil {
				t.Fatal(err)
			}
			if d, err = db.Derived(t.Context(), &topic); err != nil || d.Shards[ref].Examined != 0 || d.Shards[ref].Series != 0 {
				t.Errorf("after the drop: %+v, %v", d.Shards[ref], err)
			}
		})
	}
}

// retained is a Dropped without a registry.
type retained struct {
	mu      sync.Mutex
	gone    map[schemas.ShardRef]bool
	unknown bool // at the next look of Shards
}

func (r *retained) Shards(context.Context) (map[schemas.ShardRef]bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unknown {
		r.unknown = false
		return nil, nil
	}
	return r.gone, nil
}

func (r *retained) Unless(ctx context.Context, ref schemas.ShardRef, drop func(context.Context) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone[ref] {
		return nil
	}
	return drop(ctx)
}

// A shard whose rows retention drops while a drop of what is derived waits, since a sink derived
// it again meanwhile, keeps its sums: they are all that stays of it.
func TestDropWhileRetentionDrops(t *testing.T) {
	t.Parallel()
	for name, unknown := range map[string]bool{"before the next round": false, "within the round": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, _ := open(t)
			topic := schemas.NewTopicOf(kinds.Meter, "things")
			ref := schemas.ShardRef{Topic: topic.Name, Month: november, ID: 5}
			err := db.Ensure(t.Context(), &topic)
			if err == nil {
				err = db.Insert(t.Context(), &Insert{Topic: &topic, Schema: 1, Month: ref.Month, Shard: ref.ID, Last: 3, Frames: [][]byte{frameOf(t, &topic, 20)}})
			}
			if err != nil {
				t.Fatal(err)
			}
			state := func() DerivedShard {
				t.Helper()
				d, err := db.Derived(t.Context(), &topic)
				if err != nil {
					t.Fatal(err)
				}
				return d.Shards[ref]
			}
			derive := func(attempt int) {
				t.Helper()
				err := db.ExamineRepeats(t.Context(), &topic, ref, state().Epoch, 0, 3)
				if err == nil {
					err = db.FillSums(t.Context(), &topic, ref, 0, 3, attempt)
				}
				if s := state(); err != nil || s.Waits() != "" || s.Sums.N == 0 {
					t.Fatalf("%+v, %q, %v", s, s.Waits(), err)
				}
			}
			derive(0)
			// What is under way makes the drop wait.
			slow := make(chan error, 1)
			go func() {
				slow <- db.derive(t.Context(), &topic, ref, "examine:slow", "SELECT sleepEachRow(3) FROM numbers(3) FORMAT Null", map[string]string{"function_sleep_max_microseconds_per_block": "10000000"})
			}()
			running := func() (n uint64) {
				t.Helper()
				if err := db.Conn().QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query_id = '"+derivedPrefix(db.Database, topic.Name)+"examine:slow'").Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			embeddedtest.Eventually(t, time.Minute, func() error {
				if running() == 0 {
					return fmt.Errorf("the statement does not run yet")
				}
				return nil
			})
			retention, ended := &retained{}, make(chan error, 1)
			go func() { ended <- db.dropAllOf(t.Context(), topic.Name, []schemas.ShardRef{ref}, retention) }()
			embeddedtest.Eventually(t, time.Minute, func() error {
				if s := state(); s.Examined != 0 || s.Sums.Pos != 0 {
					return fmt.Errorf("nothing was dropped yet: %+v", s)
				}
				return nil
			})
			retention.mu.Lock() // the drop of the first round ended
			derive(1)
			retention.gone, retention.unknown = map[schemas.ShardRef]bool{ref: true}, unknown
			if running() == 0 {
				t.Fatal("the drop does not wait any more: the test does not bite")
			}
			retention.mu.Unlock()
			err = db.DropShard(t.Context(), ref)
			for _, c := range []chan error{slow, ended} {
				if e := <-c; err == nil {
					err = e
				}
			}
			if s := state(); err != nil || s.Sums.N+s.Sums.Repeats != 20 {
				t.Errorf("of the dropped shard stay the sums %+v, %v", s.Sums, err)
			}
		})
	}
}
