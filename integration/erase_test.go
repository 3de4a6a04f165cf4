package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
)

func (e *env) eraser(change ...func(*erasure.Config)) *erasure.Eraser {
	e.t.Helper()
	cfg := erasure.Config{Registry: e.reg, Reader: e.reader(), DB: e.db, Within: maxWait * time.Minute}
	for _, c := range change {
		c(&cfg)
	}
	x, err := erasure.New(e.t.Context(), cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	return x
}

// keeper has the copies of the ledger agree, as it does beside sinks.
func (e *env) keeper() *erasure.Keeper {
	e.t.Helper()
	return erasure.NewKeeper(erasure.KeeperConfig{
		Eraser: e.eraser(), Registry: e.reg, Every: 200 * time.Millisecond,
		Agreed: func(did erasure.Agreed) { e.logf("keeper: %+v", did) },
		Fault:  func(err error) { e.logf("keeper: %v", err) },
	})
}

// erase erases what a request names, to the end.
func (e *env) erase(req erasure.Request) ledger.Erasure {
	e.t.Helper()
	x := e.eraser()
	job, err := x.Start(e.t.Context(), req)
	if err != nil {
		e.t.Fatal(err)
	}
	if job, err = answered(func() (ledger.Erasure, error) { return x.Run(e.t.Context(), job.Topic, job.ID) }); err != nil {
		e.t.Fatal(err)
	}
	if job.State != ledger.Erased {
		e.t.Fatalf("the erasure ended as %s", job.State)
	}
	return job
}

// found is how many events a page has.
func (e *env) found(topic, where string) int {
	e.t.Helper()
	page, err := answered(func() (*query.Page, error) {
		return e.reader().Query(e.t.Context(), query.Request{Topic: topic, Where: where, Limit: query.MaxLimit})
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return len(page.Events)
}

// tailed is how many events of all that SHARDS holds pass a filter.
func (e *env) tailed(topic, where string) (n int) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), maxWait*30*time.Second)
	defer cancel()
	// The last frame of all says when it is over: a mark that passes every filter.
	mark := fmt.Sprint("mark-", time.Now().UnixNano())
	p := e.producer(topic)
	if err := p.Publish(ctx, producer.Event{Time: feb(999, 1000), UserID: mark}); err != nil {
		e.t.Fatal(err)
	}
	over := errors.New("over")
	err := e.reader().Tail(ctx, query.TailRequest{Topic: topic, From: "1.0", Where: "user_id = '" + mark + "' OR (" + where + ")"}, func(_ string, ev json.RawMessage) error {
		var got struct {
			UserID string `json:"user_id"`
		}
		if err := json.Unmarshal(ev, &got); err != nil {
			return err
		}
		if got.UserID == mark {
			return over
		}
		n++
		return nil
	})
	if !errors.Is(err, over) {
		e.t.Fatal(err)
	}
	return n
}

// thousands publishes 10,000 events of February, 137 of them of u-7, which rotate
// over shards.
func (e *env) thousands(topic string) {
	e.t.Helper()
	p := e.producer(topic, wholeFrames)
	mine := 0
	for i := range 10_000 {
		user := fmt.Sprintf("u-%d", 100+i%50)
		if i%73 == 5 && mine < 137 {
			user = "u-7"
			mine++
		}
		p.Log(producer.Event{Time: feb(i, 10_001), UserID: user, Message: fmt.Sprint(i), Attrs: []schemas.Attr{schemas.String("ip", fmt.Sprintf("10.0.0.%d", i%9))}})
		if i%250 == 249 { // a frame
			e.flush(p)
		}
	}
	e.flush(p)
	if mine != 137 {
		e.t.Fatalf("%d events of u-7", mine)
	}
}

// Given 10,000 events, 137 of one user over several shards: the user is erased,
// the answer says 137, no other person's events go, counters fall by 137, nothing
// brings them back, and what the user does afterwards is kept.
func TestEraseUser(t *testing.T) {
	t.Parallel()
	e := running(t, oneLane("app", 3000))
	e.thousands("app")
	e.stored("app", 10_000, 30*time.Second)
	before := e.closed("app", 30*time.Second)

	job := e.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}, Reason: "request 4711"})
	if job.Rows != 137 || job.Shards != 4 {
		t.Errorf("%d rows in %d shards, want 137 in 4", job.Rows, job.Shards)
	}
	if n := e.count("SELECT count() FROM %s WHERE user_id = 'u-7' SETTINGS apply_patch_parts = 0, apply_deleted_mask = 0", e.table("app")); n != 0 {
		t.Errorf("%d rows are in parts that are read", n)
	}
	if n := e.count("SELECT count() FROM %s", e.table("app")); n != 9863 {
		t.Errorf("%d rows, want 9863", n)
	}
	if n := e.found("app", "user_id = 'u-7'"); n != 0 {
		t.Errorf("a query finds %d", n)
	}
	if n := e.tailed("app", "user_id = 'u-7'"); n != 0 {
		t.Errorf("the stream from its beginning has %d", n)
	}
	e.stored("app", 9864, 30*time.Second)
	rep := e.verify(10_001)
	if rep.Erased != 137 || rep.Stored != 9864 {
		t.Errorf("verify: %+v", rep.Totals)
	}
	after := e.closed("app", 30*time.Second)
	for i, s := range after[:3] { // the fourth is active: its router counts on
		in := e.count("SELECT count() FROM %s WHERE shard = %d", e.table("app"), uint64(s.ID))
		if s.Rows != in || s.Rows >= before[i].Rows {
			t.Errorf("%s: its entry says %d rows, was %d; ClickHouse has %d", s.Name(), s.Rows, before[i].Rows, in)
		}
	}

	p := e.producer("app")
	for i := range 5 {
		if err := p.Publish(t.Context(), producer.Event{Time: feb(500+i, 1000), UserID: "u-7", Message: "afterwards"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := e.found("app", "user_id = 'u-7'"); n != 5 {
		t.Errorf("%d events of afterwards are found, want 5", n)
	}
	e.stored("app", 9869, 30*time.Second)
	// Once more: of what came afterwards only.
	if job = e.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}}); job.Rows != 5 {
		t.Errorf("the second time %d rows went, want 5", job.Rows)
	}
	// And by a filter, with nothing to find.
	if job = e.erase(erasure.Request{Topic: "app", Where: "attributes.ip = '10.0.0.200'"}); job.Rows != 0 || job.Shards != 0 {
		t.Errorf("nothing matches, %d rows went", job.Rows)
	}
	if rep = e.verify(10_006); rep.Erased != 142 {
		t.Errorf("verify: %+v", rep.Totals)
	}
}

// erasePointsEnv set to "all" has TestEraseKilled kill at every point; else at those
// that leave the most behind: numbers without a deletion, rows that are
// hidden and not rewritten, rows gone and not booked.
const erasePointsEnv = "ALMANAC_ERASE_POINTS"

// Whichever process is killed, at whatever point, and however often: the erasure that is
// taken up again ends as if nothing had happened.
func TestEraseKilled(t *testing.T) {
	t.Parallel()
	e := running(t, oneLane("app", 3000))
	e.thousands("app")
	e.stored("app", 10_000, 30*time.Second)
	e.closed("app", 30*time.Second)
	var gone atomic.Uint64
	points := []string{"erase.after-intent", "erase.after-delete", "erase.before-book"}
	if os.Getenv(erasePointsEnv) == "all" {
		points = append(points, "erase.entered", "erase.settled", "erase.before-intent", "erase.after-floor", "erase.after-rewrite", "erase.swept")
	}
	const atOnce = 3
	parallel(t, atOnce, func(n int) {
		for i := n; i < len(points); i += atOnce {
			gone.Add(e.eraseKilledAt(points[i], fmt.Sprintf("u-%d", 100+i)))
		}
	})
	if rep := e.verify(10_000); rep.Erased != gone.Load() || rep.Stored != 10_000-gone.Load() {
		t.Errorf("%d were erased, verify says %+v", gone.Load(), rep.Totals)
	}
}

// eraseKilledAt erases a user, is killed at the point, and has it taken up again
// by two at once. It returns how many rows the user had.
func (e *env) eraseKilledAt(point, user string) uint64 {
	t := e.t
	want := e.count("SELECT count() FROM %s WHERE user_id = '%s'", e.table("app"), user)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	var killed atomic.Bool
	dying := e.eraser(func(c *erasure.Config) {
		c.Crash = func(at string) {
			if at == point { // whatever it does from now on fails
				killed.Store(true)
				kill()
			}
		}
	})
	job, err := dying.Start(ctx, erasure.Request{Topic: "app", Users: []string{user}})
	if err != nil {
		t.Error(err)
		return 0
	}
	if _, err := dying.Run(ctx, "app", job.ID); !errors.Is(err, context.Canceled) || !killed.Load() {
		t.Errorf("%s: killed %v, it ended with %v", point, killed.Load(), err)
	}
	if rep, err := e.proof("app"); err != nil || !rep.OK() {
		t.Errorf("%s: verify in between: %v, %q", point, err, rep.Problems)
	}
	parallel(t, 2, func(int) {
		if _, err := answered(func() (ledger.Erasure, error) { return e.eraser().Run(t.Context(), "app", job.ID) }); err != nil {
			t.Errorf("%s: %v", point, err)
		}
	})
	done, err := e.reg.Erasure(t.Context(), "app", job.ID)
	if err != nil || done.State != ledger.Erased || done.Rows != want {
		t.Errorf("%s: %+v, %v; want %d rows", point, done, err, want)
	}
	if n := e.count("SELECT count() FROM %s WHERE user_id = '%s' SETTINGS apply_patch_parts = 0", e.table("app"), user); n != 0 {
		t.Errorf("%s: %d rows are left", point, n)
	}
	return want
}

// What was erased is in no replay: neither one that begins afterwards, from the
// streams, from ClickHouse or into a topic, nor one that was begun before.
func TestReplayAfterErasure(t *testing.T) {
	t.Parallel()
	other := replayTopic(2)
	other.Name = "other"
	e := running(t, replayTopic(2), other)
	const n, mine = 1000, 20 // of each of fifty users
	e.fill("app", n, feb(1, 2))
	e.stored("app", n, 20*time.Second)
	begun, err := e.replayer(nil).Begin(t.Context(), replay.Request{Topic: "app"})
	if err != nil {
		t.Fatal(err)
	}
	if job := e.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}}); job.Rows != mine {
		t.Fatalf("%d rows went, want %d", job.Rows, mine)
	}
	without := func(what string, lines []string) {
		t.Helper()
		if got := len(slices.Compact(ids(parsed(t, lines)))); len(lines) != n-mine || got != len(lines) {
			t.Errorf("%s: %d events with %d ids, want %d", what, len(lines), got, n-mine)
		}
		if strings.Contains(strings.Join(lines, ""), `"user_id":"u-7"`) {
			t.Errorf("%s: what was erased came", what)
		}
		e.likeQuery("app", lines)
	}
	without("from the streams", e.replayed(replay.Request{Topic: "app"}))
	var out bytes.Buffer
	if _, err := begun.Run(t.Context(), &out, replay.Pace{}); err != nil {
		t.Fatal(err)
	}
	without("begun before", slices.Collect(strings.Lines(out.String())))
	e.purgeSome("app", 5)
	without("from both", e.replayed(replay.Request{Topic: "app", Order: replay.ByTime}))
	into, err := e.replayer(nil).Begin(t.Context(), replay.Request{Topic: "app", Into: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := into.Run(t.Context(), nil, replay.Pace{}); err != nil || res.Events != n-mine {
		t.Errorf("into a topic: %+v %v", res, err)
	}
	e.stored("other", n-mine, 20*time.Second)
	if got := e.count("SELECT count() FROM %s WHERE user_id = 'u-7'", e.table("other")); got != 0 {
		t.Errorf("the other topic has %d events of what was erased", got)
	}
}
