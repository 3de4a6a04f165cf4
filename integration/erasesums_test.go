package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/rebuild"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
	"github.com/almanac-events/almanac/sinks"
)

// droppedMonth is a meter of which retention dropped a month; what is left of it are sums.
type droppedMonth struct {
	*env
	first, next time.Time // of the month, and of the one after it
	accepted    uint64
	sink        func()             // ends it
	frames      []*streams.Message // of the month, before it was dropped
}

// Each customer has two spaces in the month, with three diffs each that come twice; and one
// diff of yesterday.
const (
	droppedCustomers = 10
	diffsOfEach      = 2 * 3 * 2
)

func newDroppedMonth(t *testing.T) *droppedMonth {
	t.Helper()
	topic := meterTopic(t, "usage")
	e := start(t, topic)
	now := time.Now().UTC()
	d := &droppedMonth{env: e, first: time.Date(now.Year(), now.Month()-2, 1, 0, 0, 0, 0, time.UTC)}
	d.next = d.first.AddDate(0, 1, 0)
	var clock atomic.Int64
	clock.Store(now.UnixNano())
	e.router()
	d.sink = e.sink(func(c *sinkConfig) { c.Retention.Now = func() time.Time { return time.Unix(0, clock.Load()) } })
	e.rollups()
	var all []meter.Diff
	for u := range droppedCustomers {
		for n := range diffsOfEach {
			all = append(all, meter.Diff{Meter: "bytes", Provider: "p", Space: fmt.Sprintf("s-%d-%d", u, n%2), Cause: fmt.Sprint("c-", n%6), Delta: int64(1 + u), Customer: customer(u), Time: d.first.Add(time.Duration(1+n%6) * 24 * time.Hour)})
		}
		all = append(all, meter.Diff{Meter: "bytes", Provider: "p", Space: fmt.Sprintf("s-%d-0", u), Cause: "yesterday", Delta: 1000, Customer: customer(u), Time: now.Add(-24 * time.Hour)})
	}
	e.diffs("usage", all...)
	d.accepted = uint64(len(all))
	e.finalUsage("usage")
	e.derived("usage")
	for _, m := range e.messages(schemas.StreamShards, schemas.ShardsFilter("usage")) {
		if ref, err := schemas.ParseShardSubject(m.Subject); err == nil && ref.Month == schemas.MonthOf(d.first.UnixNano()) {
			d.frames = append(d.frames, m)
		}
	}
	topic.KeepDays = int(now.Sub(d.next)/(24*time.Hour)) - 1
	e.apply(topic)
	clock.Store(now.Add(25 * time.Hour).UnixNano()) // a shard is left alone on its first day
	eventually(t, time.Minute, func() error {
		for _, s := range e.shards("usage") {
			if s.Month == schemas.MonthOf(d.first.UnixNano()) && s.Status != registry.Dropped {
				return fmt.Errorf("not yet dropped: %s", describe(e.shards("usage")))
			}
		}
		return nil
	})
	for _, s := range e.shards("usage") {
		if s.Gone() { // by the clock of erasures
			e.edit(s, func(s *registry.Shard) { s.DroppedAt = now })
		}
	}
	return d
}

func customer(n int) string { return fmt.Sprintf("cust-%d", n) }

// bills are the bills of the month and of what follows, by customer.
func (d *droppedMonth) bills() map[string]string {
	d.t.Helper()
	rep, err := usage.New(d.reader()).Report(d.t.Context(), usage.Request{Topic: "usage", From: d.first, To: d.next.AddDate(0, 3, 0), GroupBy: usage.ByCustomer})
	if err != nil {
		d.t.Fatal(err)
	}
	out := map[string]string{}
	for _, b := range rep.Bills {
		out[b.Customer] = fmt.Sprintf("%s %s %d %d", b.SizeEnd, b.Usage, b.Causes, b.Repeats)
	}
	return out
}

// without checks that the bills are those before but for some customers.
func (d *droppedMonth) without(when string, before map[string]string, erased ...string) {
	d.t.Helper()
	now := d.bills()
	for c, want := range before {
		got, there := now[c]
		gone := false
		for _, e := range erased {
			gone = gone || c == e
		}
		if there == gone || there && got != want {
			d.t.Errorf("%s: %s has %q, had %q", when, c, got, want)
		}
	}
	for _, c := range erased {
		if n := d.count("SELECT count() FROM %s WHERE user_id = '%s'", sql.QuotedTable(d.srv.Database, "usage.sums"), c); n != 0 {
			d.t.Errorf("%s: %d rows of sums name %s", when, n, c)
		}
		if n := d.count("SELECT count() FROM system.mutations WHERE database = '%s' AND command LIKE '%%%s%%'", d.srv.Database, c); n != 0 {
			d.t.Errorf("%s: %d mutations name %s", when, n, c)
		}
	}
	if n := d.count("SELECT count() FROM system.tables WHERE database = '%s' AND name LIKE 'usage.%%.step.%%'", d.srv.Database); n != 0 {
		d.t.Errorf("%s: %d tables are left", when, n)
	}
}

// Of a month whose rows retention dropped the sums stay, and an erasure takes a customer out
// of them, wherever it is killed and by two at once afterwards. Bills of others are the same,
// also after a rebuild.
func TestEraseDroppedMonth(t *testing.T) {
	t.Parallel()
	d := newDroppedMonth(t)
	before := d.bills()
	if len(before) != droppedCustomers {
		t.Fatalf("%v", before)
	}
	var erased []string
	points := []string{"erase.after-sums-intent", "erase.after-sums"}
	if os.Getenv(erasePointsEnv) == "all" {
		points = append(points, "erase.entered", "erase.swept", "erase.before-sums-intent", "erase.before-book", "erase.summed")
	}
	for i, point := range points {
		user := customer(i)
		ctx, kill := context.WithCancel(t.Context())
		swept := false
		dying := d.eraser(func(c *erasure.Config) {
			c.Crash = func(at string) {
				if swept = swept || at == "erase.swept"; at == point && (swept || point == "erase.entered") {
					kill()
				}
			}
		})
		job, err := dying.Start(ctx, erasure.Request{Topic: "usage", Users: []string{user}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dying.Run(ctx, "usage", job.ID); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: it ended with %v", point, err)
		}
		kill()
		if p, err := d.eraser().Show(t.Context(), "usage", job.ID); err != nil || p.Certified {
			t.Errorf("%s: killed and certified: %+v, %v", point, p, err)
		}
		parallel(t, 2, func(int) {
			if _, err := d.eraser().Run(t.Context(), "usage", job.ID); err != nil {
				t.Errorf("%s: %v", point, err)
			}
		})
		erased = append(erased, user)
		p, err := d.eraser().Show(t.Context(), "usage", job.ID)
		if err != nil || !p.Certified || p.Erasure.Rows != 1 || p.Erasure.Diffs != diffsOfEach {
			t.Errorf("%s: %+v, %v", point, p, err)
		}
		d.without(point, before, erased...)
	}
	d.verify(d.accepted)

	// By space and by month; and what the sums do not tell apart is refused by name.
	job := d.erase(erasure.Request{Topic: "usage", Where: "space IN ('s-7-0', 's-7-1') AND type = 'bytes'"})
	if erased = append(erased, customer(7)); job.Diffs != diffsOfEach || job.Rows != 1 {
		t.Errorf("by space: %+v", job)
	}
	d.without("by space", before, erased...)
	for name, req := range map[string]erasure.Request{
		"a cause":                  {Where: "cause = 'c-1'"},
		"a customer and a cause":   {Users: []string{customer(8)}, Where: "cause = 'c-1'"},
		"a label":                  {Where: "attributes.plan = 'free'"},
		"a part of the month":      {Users: []string{customer(8)}, From: d.first.AddDate(0, 0, 3)},
		"another part of it":       {Users: []string{customer(8)}, To: d.first.AddDate(0, 0, 3)},
		"a message, in that month": {Where: "message = 'x'", To: d.next},
	} {
		req.Topic = "usage"
		for _, err := range []error{second(d.eraser().Start(t.Context(), req)), second(d.eraser().Plan(t.Context(), req))} {
			if !errors.Is(err, erasure.ErrRequest) || !strings.Contains(err.Error(), schemas.MonthOf(d.first.UnixNano()).String()) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	left := uint64(droppedCustomers - len(erased))
	if job = d.erase(erasure.Request{Topic: "usage", Where: "cause = 'yesterday'", From: d.next}); job.Rows != left || job.Diffs != 0 {
		t.Errorf("a cause since: %+v", job)
	}
	before = d.bills()
	plan, err := d.eraser().Plan(t.Context(), erasure.Request{Topic: "usage", Users: []string{customer(8)}})
	if err != nil || plan.Diffs != diffsOfEach || plan.Rows != 0 {
		t.Errorf("plan: %+v, %v", plan, err)
	}
	// A rebuild derives again what it can, and what it cannot stays.
	nc := d.connect()
	if _, err := rebuild.Run(t.Context(), rebuild.Config{NATS: nc, Registry: d.registry(nc), DB: d.db}, "usage", true); err != nil {
		t.Fatal(err)
	}
	d.without("rebuilt", before)
	d.derived("usage")
	d.without("rebuilt and derived", before)
	if job = d.erase(erasure.Request{Topic: "usage", From: d.first, To: d.next}); job.Diffs != left*diffsOfEach || job.Rows != 0 {
		t.Errorf("the whole month: %+v", job)
	}
	if left := d.bills(); len(left) != 0 {
		t.Errorf("nothing is left, bills are %v", left)
	}
	d.verify(d.accepted)
}

// The registry loses all keys of a meter of which retention dropped a month. A repair knows from
// SHARDS that the month was dropped, and bills still have it.
func TestLostKeysOfADroppedMonth(t *testing.T) {
	t.Parallel()
	d := newDroppedMonth(t)
	before := d.bills()
	d.purgeStreams(schemas.KVStream, schemas.CopiesStream)
	d.killed()
	d.repaired(d.accepted)
	d.without("repaired", before)
	d.derived("usage")
	d.without("repaired and derived", before)
}

// A sink that starts while the registry lacks the entry of a shard that was dropped, and SHARDS
// still has its frames, stores none of them and leaves its sums alone.
func TestSinkLeavesAnUnknownShard(t *testing.T) {
	t.Parallel()
	d := newDroppedMonth(t)
	before := d.bills()
	d.sink()
	for _, s := range d.shards("usage") {
		if s.Gone() {
			d.purgeKey(schemas.ShardKey("usage", s.Month, s.ID))
		}
	}
	faults := make(chan error, 1)
	if err := d.shardsStream().Purge(t.Context(), jetstream.WithPurgeSubject(d.frames[0].Subject)); err != nil {
		t.Fatal(err)
	}
	for _, m := range d.frames { // they were not purged yet
		again := nats.NewMsg(m.Subject)
		again.Data = m.Data
		for k := range m.Header {
			if strings.HasPrefix(k, "Almanac-") {
				again.Header.Set(k, m.Header.Get(k))
			}
		}
		if _, err := d.js().PublishMsg(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
	d.sink = d.env.sink(func(c *sinkConfig) {
		c.Hooks.Fault = func(ref schemas.ShardRef, err error) {
			if ref.Month == schemas.MonthOf(d.first.UnixNano()) && errors.Is(err, sinks.ErrUnknown) {
				select {
				case faults <- err:
				default:
				}
			}
		}
	})
	select {
	case err := <-faults:
		if !strings.Contains(err.Error(), "almanac repair usage") {
			t.Error(err)
		}
	case <-time.After(maxWait * time.Minute):
		t.Fatal("a sink did not say that a shard has no entry")
	}
	if n := d.count("SELECT count() FROM %s WHERE month = %d", d.table("usage"), uint32(schemas.MonthOf(d.first.UnixNano()))); n != 0 {
		t.Errorf("%d rows of a dropped month came back", n)
	}
	d.repaired(d.accepted)
	d.without("repaired", before)
}

func second[T any](_ T, err error) error { return err }

// An erasure is killed once it has counted a shard's rows, and retention drops the shard before
// it is taken up again: its sums lose the customer, and no other; where they do not tell whom
// it named from others, it is not certified and says why.
func TestErasePendingDrop(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]string{"a customer": "", "a cause": "cause = 'c-1'"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := running(t, meterTopic(t, "usage"))
			stop := e.rollups()
			at := time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)
			var all []meter.Diff
			for i := range 4 {
				all = append(all, meter.Diff{Meter: "bytes", Provider: "p", Space: "s", Cause: fmt.Sprint("c-", i), Delta: 10, Customer: customer(i % 2), Time: at})
			}
			e.diffs("usage", all...)
			e.finalUsage("usage")
			e.derived("usage")
			stop()
			ctx, kill := context.WithCancel(t.Context())
			dying := e.eraser(func(c *erasure.Config) {
				c.Crash = func(at string) {
					if at == "erase.after-intent" {
						kill()
					}
				}
			})
			req := erasure.Request{Topic: "usage", Where: where}
			if where == "" {
				req.Users = []string{customer(1)}
			}
			job, err := dying.Start(ctx, req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := dying.Run(ctx, "usage", job.ID); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			for _, s := range e.shards("usage") { // what retention does
				rows, head := e.count("SELECT count() FROM %s WHERE shard = %d", e.table("usage"), uint64(s.ID)), e.count("SELECT max(pos) FROM %s WHERE shard = %d", e.table("usage"), uint64(s.ID))
				e.edit(s, func(s *registry.Shard) {
					s.Status, s.SealedAt, s.Floor, s.DroppedAt, s.DroppedRows, s.DropReason = registry.Dropped, head, head, time.Now().UTC(), rows, "kept 30 days"
				})
				if err := e.db.DropShard(t.Context(), schemas.ShardRef{Topic: "usage", Month: s.Month, ID: s.ID}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := e.eraser().Run(t.Context(), "usage", job.ID); err != nil {
				t.Fatal(err)
			}
			p, err := e.eraser().Show(t.Context(), "usage", job.ID)
			if err != nil {
				t.Fatal(err)
			}
			size := e.count("SELECT toUInt64(sum(delta)) FROM %s", sql.QuotedTable(e.srv.Database, "usage.sums"))
			if where == "" && (!p.Certified || size != 20) {
				t.Errorf("certified: %t (%s), the sums come to %d, want 20", p.Certified, p.NotCertified, size)
			}
			if where != "" && (p.Certified || !strings.Contains(p.NotCertified, "2026-02") || size != 40) {
				t.Errorf("certified: %t (%s), the sums come to %d, want 40", p.Certified, p.NotCertified, size)
			}
		})
	}
}
