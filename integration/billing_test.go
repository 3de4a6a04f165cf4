package integration

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/billing"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/rollups"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// meterTopic is a topic of kind meter.
func meterTopic(t testing.TB, name string) schemas.Topic {
	t.Helper()
	topic, err := schemas.Topic{Name: name, Kind: kinds.Meter, Lanes: 2}.Declared()
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

// rollups runs what fills derived tables.
func (e *env) rollups(change ...func(*rollups.Config)) (stop func()) {
	e.t.Helper()
	cfg := rollups.Config{Registry: e.registry(e.connect()), DB: e.sinkDB, Every: 400 * time.Millisecond, Hooks: rollups.Hooks{
		Fault: func(ref schemas.ShardRef, err error) { e.logf("rollups %s: %v", ref, err) },
	}}
	for _, c := range change {
		c(&cfg)
	}
	u, err := rollups.New(cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	return e.background(u.Run)
}

// diffs stores changes of a topic of kind meter.
func (e *env) diffs(topic string, diffs ...meter.Diff) {
	e.t.Helper()
	p := e.producer(topic)
	for _, d := range diffs {
		ev, err := d.Event()
		if err != nil {
			e.t.Fatal(err)
		}
		if err := p.Submit(e.t.Context(), ev, nil); err != nil {
			e.t.Fatal(err)
		}
	}
	e.flush(p)
}

// closer closes months; it ends at a point as a killed process does.
func (e *env) closer(point string) *billing.Closer { return e.closerAt(point, func(string) {}) }

// closerAt is closer, which calls at at each point before.
func (e *env) closerAt(point string, at func(point string)) *billing.Closer {
	e.t.Helper()
	nc := e.connect()
	reg := e.registry(nc)
	r, err := query.New(nc, reg, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	d, err := billing.New(billing.Config{NATS: nc, Registry: reg, Reader: r, Crash: func(p string) {
		at(p)
		if p == point {
			nc.Close() // what was not sent is not
			panic(killed(p))
		}
	}})
	if err != nil {
		e.t.Fatal(err)
	}
	return d
}

// killed is a point at which a test ended the work.
type killed string

// untilKilled calls f, which may be killed.
func untilKilled(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(killed); !ok {
				panic(p)
			}
			err = errKilled
		}
	}()
	return f()
}

// finalUsage waits until what a topic accepted is stored.
func (e *env) finalUsage(topics ...string) {
	e.t.Helper()
	r, err := query.New(e.connect(), e.reg, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(e.t.Context(), maxWait*time.Minute)
	defer cancel()
	if n, err := r.WaitStored(ctx, topics, maxWait*20*time.Second, nil); err != nil || n > 0 {
		e.t.Fatalf("%d not stored: %v", n, err)
	}
}

const billedSpaces = 2500 // some frames

func february(day, space int, cause string, delta int64) meter.Diff {
	return meter.Diff{Meter: "bytes", Provider: "p", Space: fmt.Sprintf("s-%04d", space), Cause: cause, Delta: delta, Customer: fmt.Sprintf("u-%d", space%7), Time: time.Date(2026, 2, day, 0, 0, 0, 0, time.UTC)}
}

// A month is closed by runs that are killed between any two steps, while diffs come late, and
// then by two at once: each space has one bill, and the corrections lead from it to what a
// report says.
func TestCloseOnce(t *testing.T) {
	t.Parallel()
	e := running(t, meterTopic(t, "usage"), schemas.Topic{Name: "bills", Lanes: 2})
	e.rollups()
	var all []meter.Diff
	for i := range billedSpaces {
		all = append(all, february(3, i, "c-1", 100))
	}
	e.diffs("usage", all...)
	e.finalUsage("usage")
	req := billing.Request{Topic: "usage", Month: 202602, Into: "bills"}

	for i, point := range []string{"billing.read", "billing.begun", "billing.positions", "billing.some", "billing.all"} {
		if err := untilKilled(func() error { _, err := e.closer(point).Close(t.Context(), req); return err }); !errors.Is(err, errKilled) {
			t.Fatalf("%s: %v", point, err)
		}
		e.diffs("usage", february(10, i, fmt.Sprint("late-", i), 1))
		e.finalUsage("usage")
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, err := e.closer("").Close(t.Context(), req); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	res, err := e.closer("").Close(t.Context(), req)
	if err != nil || !res.Before || res.Bills != billedSpaces || res.Published != 0 {
		t.Errorf("closed again: %+v: %v", res, err)
	}
	e.billed(0)

	// What came since moves bills, also twice, and by runs that are killed.
	e.diffs("usage", february(20, 7, "later", 5), february(28, billedSpaces, "new", 9))
	e.finalUsage("usage")
	for _, point := range []string{"billing.begun", "billing.some", "billing.all"} {
		if err := untilKilled(func() error { _, err := e.closer(point).Corrections(t.Context(), req); return err }); !errors.Is(err, errKilled) {
			t.Fatalf("%s: %v", point, err)
		}
		e.diffs("usage", february(21, 8, "later-"+point, 1))
		e.finalUsage("usage")
	}
	if _, err := e.closer("").Corrections(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if res, err := e.closer("").Corrections(t.Context(), req); err != nil || res.Published != 0 || len(res.Corrections) != 0 || res.Bills != billedSpaces+1 {
		t.Errorf("corrected again: %+v: %v", res, err)
	}
	e.billed(1)
	e.finalUsage("bills")
	if got := e.count("SELECT countIf(attributes['usage'] != attributes['was_usage']) FROM %s WHERE type = 'usage.correction' AND attributes['space'] = 's-0007' AND attributes['bill_since'] LIKE '%%\"cause\":\"later\"%%'", e.table("bills")); got != 1 {
		t.Errorf("%d corrections name the diff that moved s-0007", got)
	}
	if dead := e.count("SELECT count() FROM %s WHERE type NOT IN ('usage.bill', 'usage.correction', 'usage.bucket', 'usage.positions')", e.table("bills")); dead != 0 {
		t.Errorf("%d other events", dead)
	}
}

// Three close a month at once. All have read that nothing is published before one publishes,
// and the bills of each are others: a space still has one.
func TestTwoCloses(t *testing.T) {
	t.Parallel()
	e := running(t, meterTopic(t, "usage"), schemas.Topic{Name: "bills"})
	const spaces, desks = 50, 3
	var before, together sync.WaitGroup
	together.Add(desks)
	for i := range desks {
		for n := range spaces {
			e.diffs("usage", february(3+i, n, fmt.Sprint("c-", i), 100))
			if n > 0 && i > 0 {
				break
			}
		}
		e.finalUsage("usage")
		read := make(chan struct{})
		before.Go(func() {
			_, err := e.closerAt("", func(p string) {
				if p == "billing.read" {
					close(read)
				}
				if p == "billing.positions" {
					together.Done()
					together.Wait()
				}
			}).Close(t.Context(), billing.Request{Topic: "usage", Month: 202602, Into: "bills"})
			if err != nil {
				t.Error(err)
			}
		})
		<-read // so that the next has other bills
	}
	before.Wait()
	e.finalUsage("bills")
	for q, want := range map[string]uint64{
		"SELECT countIf(type = 'usage.bill') FROM %s":                          spaces,
		"SELECT uniqExactIf(attributes['space'], type = 'usage.bill') FROM %s": spaces,
		"SELECT countIf(type = 'usage.bucket') FROM %s":                        1,
	} {
		if got := e.count(q, e.table("bills")); got != want {
			t.Errorf("%s: %d, want %d", q, got, want)
		}
	}
}

// billed checks that each space has one bill, its revisions follow each other, and after
// corrections that the last is what the diffs come to.
func (e *env) billed(more int) {
	e.t.Helper()
	e.finalUsage("bills")
	for q, want := range map[string]uint64{
		"SELECT countIf(type = 'usage.bill') FROM %s":                                                                                                    billedSpaces,
		"SELECT uniqExactIf(attributes['space'], type = 'usage.bill') FROM %s":                                                                           billedSpaces,
		"SELECT uniqExactIf(attributes['space'], attributes['bill_revision'] != '') FROM %s":                                                             billedSpaces + uint64(more),
		"SELECT toUInt64(count() - uniqExact(id)) FROM %s":                                                                                               0,
		"SELECT count() FROM (SELECT attributes['bill_revision'] AS r, attributes['space'] AS s FROM %s WHERE r != '' GROUP BY r, s HAVING count() > 1)": 0,
	} {
		if got := e.count(q, e.table("bills")); got != want {
			e.t.Errorf("%s: %d, want %d", q, got, want)
		}
	}
	if more == 0 {
		return
	}
	var last, sum string
	err := e.hand.Conn().QueryRow(e.t.Context(), fmt.Sprintf("SELECT toString(sum(u)) FROM (SELECT argMax(toInt128(attributes['usage']), toUInt64(attributes['bill_revision'])) AS u FROM %s WHERE attributes['bill_revision'] != '' GROUP BY attributes['space'])", e.table("bills"))).Scan(&last)
	if err == nil {
		err = e.hand.Conn().QueryRow(e.t.Context(), fmt.Sprintf("SELECT toString(sum(toInt128(delta) * (%d - toUnixTimestamp64Milli(ts)))) FROM %s", schemas.Month(202602).End()/1e6, e.table("usage"))).Scan(&sum)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	if _, ok := new(big.Int).SetString(last, 10); !ok || last != sum {
		e.t.Errorf("the last revisions come to %s, the diffs to %s", last, sum)
	}
}

// What cannot be closed is refused by name.
func TestCloseRefused(t *testing.T) {
	t.Parallel()
	e := running(t, meterTopic(t, "usage"), schemas.Topic{Name: "bills"}, schemas.Topic{Name: "other"})
	e.diffs("usage", february(1, 1, "c", 1))
	e.finalUsage("usage")
	next := schemas.MonthOf(time.Now().UnixNano())
	for name, c := range map[string]struct {
		req  billing.Request
		says string
	}{
		"month under way":  {billing.Request{Topic: "usage", Month: next, Into: "bills"}, "close it after that"},
		"into a meter":     {billing.Request{Topic: "usage", Month: 202602, Into: "usage"}, "into a topic of kind log"},
		"of a log":         {billing.Request{Topic: "bills", Month: 202602, Into: "other"}, "of kind log"},
		"by day":           {billing.Request{Topic: "usage", Month: 202602, Into: "bills", GroupBy: "day"}, "by space, customer"},
		"nowhere":          {billing.Request{Topic: "usage", Month: 202602, Into: "nowhere"}, "nowhere"},
		"of nothing known": {billing.Request{Topic: "nothing", Month: 202602, Into: "bills"}, "nothing"},
	} {
		if _, err := e.closer("").Close(t.Context(), c.req); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	req := billing.Request{Topic: "usage", Month: 202602, Into: "bills"}
	if _, err := e.closer("").Corrections(t.Context(), req); !errors.Is(err, billing.ErrOpen) {
		t.Errorf("corrections of an open month: %v", err)
	}
	if _, err := e.closer("").Close(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	req.Into = "other"
	if _, err := e.closer("").Close(t.Context(), req); !errors.Is(err, billing.ErrElsewhere) {
		t.Errorf("into another topic: %v", err)
	}
	req.Into, req.GroupBy = "bills", "customer"
	if _, err := e.closer("").Close(t.Context(), req); !errors.Is(err, billing.ErrElsewhere) {
		t.Errorf("by customer: %v", err)
	}
	// The target lost the bills of a month that was closed: nothing is billed twice.
	req = billing.Request{Topic: "usage", Month: 202601, Into: "bills"}
	err := e.reg.SaveJob(t.Context(), &registry.Job{Verb: "usage-close", ID: "usage-2026-01", Done: true, State: []byte(`{"into":"bills","group_by":"space","measure":"integral","round":0,"buckets":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.closer("").Close(t.Context(), req); !errors.Is(err, billing.ErrLost) {
		t.Errorf("without its bills: %v", err)
	}
}
