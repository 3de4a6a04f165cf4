package integration

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// An address and a user are cleared after a while and the count stays; later the
// events are gone, and a late one for their month is refused by name. Two sinks
// keep house at once; the janitor's clock is the test's.
func TestRetention(t *testing.T) {
	t.Parallel()
	topic := newTopic("app", schemas.Field{Name: "ip", Type: schemas.TypeString})
	topic.Lanes, topic.Rotate = 2, schemas.Rotation{Rows: 1000}
	e := start(t, topic)
	var clock atomic.Int64
	now := time.Now()
	set := func(at time.Time) { clock.Store(at.UnixNano()) }
	set(now)
	injected := func(c *sinkConfig) { c.Retention.Now = func() time.Time { return time.Unix(0, clock.Load()) } }
	stopRouter := e.router()
	stopSink := e.sink(injected)
	e.sink(injected)

	p := e.producer("app")
	const n = 5000
	month := schemas.MonthOf(now.AddDate(-1, 0, 0).UnixNano())
	first := time.Unix(0, month.Start()).UTC()
	for i := range n {
		p.Log(producer.Event{Time: first.Add(time.Duration(i) * time.Minute), UserID: fmt.Sprintf("u-%d", i%50), Message: fmt.Sprint(i),
			Attrs: []producer.Attr{producer.String("ip", fmt.Sprintf("192.0.2.%d", i%250)), producer.String("agent", "curl"), producer.String("path", "/")}})
	}
	e.flush(p)
	e.stored("app", n, time.Minute)
	e.verify(n)
	one, err := e.reader().Query(t.Context(), query.Request{Topic: "app", Limit: 1})
	if err != nil || len(one.Events) != 1 {
		t.Fatal(one, err)
	}

	personal := func() uint64 {
		return e.count("SELECT countIf(user_id != '' OR ip != '' OR mapContains(attributes, 'agent')) FROM %s SETTINGS apply_patch_parts = 0", e.table("app"))
	}
	same := func() uint64 {
		return e.count("SELECT sum(cityHash64(ts, id, message, shard, pos, attributes['path'])) FROM %s", e.table("app"))
	}
	before := same()
	if personal() != n {
		t.Fatalf("%d events have personal fields, want all", personal())
	}
	topic.Anonymise = schemas.Anonymise{AfterDays: 7, Fields: []string{"user_id", "ip", "attributes.agent"}}
	e.apply(topic)
	set(now.Add(25 * time.Hour)) // a shard is left alone on its first day
	eventually(t, 20*time.Second, func() error {
		for _, s := range e.shards("app") {
			if s.AnonymisedAt.IsZero() {
				return fmt.Errorf("not yet anonymised: %s", describe(e.shards("app")))
			}
		}
		return nil
	})
	if rows := e.count("SELECT count() FROM %s", e.table("app")); rows != n || personal() != 0 || same() != before {
		t.Errorf("%d rows, %d with personal fields, the rest changed: %t; want %d, 0, false", rows, personal(), same() != before, n)
	}
	e.unnamed(schemas.StreamShards, schemas.SubjectsShards)
	// The last message of each lane goes too: something is put behind it.
	eventually(t, 20*time.Second, func() error {
		if ahead := time.Unix(0, clock.Load()).Sub(now); ahead < 10*24*time.Hour { // never past what is kept of today
			set(now.Add(ahead + schemas.DedupWindow))
		}
		for _, msg := range e.messages(schemas.StreamEvents, ">") {
			if len(msg.Data) > 0 {
				return fmt.Errorf("%s still has %d bytes on %s", schemas.StreamEvents, len(msg.Data), msg.Subject)
			}
		}
		return nil
	})
	e.verify(n)

	topic.KeepDays = 30
	e.apply(topic)
	eventually(t, 20*time.Second, func() error {
		for _, s := range e.shards("app") {
			if s.Status != registry.Dropped {
				return fmt.Errorf("not yet dropped: %s", describe(e.shards("app")))
			}
		}
		return nil
	})
	e.stored("app", 0, time.Minute)
	if rep := e.verify(n); rep.Dropped != n || rep.Stored != 0 || !strings.Contains(rep.Topics[0].Shards[0].Note, "kept 30 days, dropped ") {
		t.Errorf("the report: %+v", rep.Totals)
	}
	if page, err := e.reader().Query(t.Context(), query.Request{Topic: "app"}); err != nil || len(page.Events) != 0 || len(page.Shards) != 0 {
		t.Errorf("a page of nothing: %+v (%v)", page, err)
	}
	stopSink()
	stopRouter()
	e.sink(injected)
	e.router()

	// Late events for that month, by frame and by JSON; this month's go on.
	p.Log(producer.Event{Time: first, UserID: "u-1", Message: "late"})
	p.Log(producer.Event{Time: now, UserID: "u-1", Message: "now"})
	e.flush(p)
	e.publish(schemas.EventsSubject("app", month, 0), fmt.Sprintf(`{"message":"late","ts":%q}`, first.Format(time.RFC3339)))
	e.stored("app", 1, time.Minute)
	e.routed("app", n+3)
	letters, err := e.reader().Dead(t.Context(), "app", 10)
	if err != nil || len(letters) != 2 {
		t.Fatalf("%d dead letters, want 2 (%v)", len(letters), err)
	}
	for _, l := range letters {
		if l.Reason != "past-retention" || !strings.Contains(l.Detail, month.String()) || !strings.Contains(l.Detail, "30 days") {
			t.Errorf("refused as %s: %s", l.Reason, l.Detail)
		}
	}
	if rep := e.verify(n + 3); rep.Dropped != n || rep.Stored != 1 || rep.Dead != 2 {
		t.Errorf("the report: %+v", rep.Totals)
	}
}

// apply declares a topic again.
func (e *env) apply(topic schemas.Topic) {
	e.t.Helper()
	if _, _, err := e.reg.Apply(e.t.Context(), topic, false); err != nil {
		e.t.Fatal(err)
	}
}

// unnamed checks that no message of a stream holds events.
func (e *env) unnamed(stream, filter string) {
	e.t.Helper()
	for _, msg := range e.messages(stream, filter) {
		if len(msg.Data) > 0 {
			e.t.Errorf("%s still has %d bytes on %s", stream, len(msg.Data), msg.Subject)
		}
	}
}
