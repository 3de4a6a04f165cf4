package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
)

// One insert takes frames from both sides of many fences, one behind each of its frames: each erasure takes the user's
// events of the frames up to its fence and no other, and so does a sink that stores the frames again.
func TestEraseWithAFenceBehindEachFrame(t *testing.T) {
	t.Parallel()
	e := start(t, oneLane("app", 100_000))
	e.router()
	p := e.producer("app", wholeFrames)
	const frames, all = 8, 8 * (8 + 2)
	user := func(k int) string { return fmt.Sprint("u-", k) }
	x := e.eraser()
	var jobs []ledger.Erasure
	for k := range frames + 1 { // the first fence lies before all frames
		if k > 0 {
			for u := range frames + 2 { // the last user is not erased
				p.Log(producer.Event{Time: feb(u, 1000), UserID: user(u), Message: fmt.Sprint(k)})
			}
			e.flush(p)
		}
		job, err := x.Start(t.Context(), erasure.Request{Topic: "app", Users: []string{user(k)}})
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, job)
	}
	e.routed("app", all)
	stop := e.sink() // only now: all goes in one insert
	e.stored("app", all, 30*time.Second)
	if n := e.count("SELECT uniqExact(_part) FROM %s", e.table("app")); n != 1 {
		t.Fatalf("the frames are in %d parts, want one insert", n)
	}
	left := uint64(frames) // of the user that is not erased
	for k := range frames + 1 {
		left += uint64(frames - k)
	}
	exact := func(when string) {
		t.Helper()
		for k := range frames + 1 {
			if n := e.count("SELECT countIf(pos <= %d) + 1000 * uniqExactIf(pos, pos > %[1]d) + 1000000 * countIf(toUInt64(message) != pos) FROM %s WHERE user_id = '%s'", k, e.table("app"), user(k)); n != uint64(1000*(frames-k)) {
				t.Errorf("%s: of %s, whose fence lies behind frame %d of %d: %d events up to it, %d positions behind it, %d events at a wrong position", when, user(k), k, frames, n%1000, n/1000%1000, n/1000000)
			}
			if n := e.found("app", fmt.Sprintf("user_id = '%s'", user(k))); n != frames-k {
				t.Errorf("%s: %d events of %s are found, want the %d behind the fence", when, n, user(k), frames-k)
			}
		}
		if n := len(e.replayed(replay.Request{Topic: "app"})); n != int(left) {
			t.Errorf("%s: a replay has %d events, want %d", when, n, left)
		}
	}
	for k := range jobs {
		job, err := answered(func() (ledger.Erasure, error) { return x.Run(t.Context(), "app", jobs[k].ID) })
		if err != nil || job.State != ledger.Erased || job.Rows != uint64(k) {
			t.Fatalf("%s: %+v, %v; want %d events", user(k), job, err, k)
		}
	}
	exact("erased")
	e.verify(all)
	stop()
	shard := e.shards("app")[0] // ClickHouse lost what it had
	e.exec("ALTER TABLE %s DROP PARTITION ID '%s'", e.table("app"), schemas.PartitionID(shard.Month, shard.ID))
	e.sink()
	e.stored("app", left, 30*time.Second)
	exact("stored again")
	e.verify(all)
}
