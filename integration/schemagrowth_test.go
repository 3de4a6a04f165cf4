package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/almanac-events/almanac/internal/maintenance/rebuild"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// A promoted field is added while events flow: nothing stops, events from before
// have it as their attributes say, stored or not, the filter, the masks and the ready-made
// views know it, and the read-only account of the native protocol sees all that
// and can change none of it.
func TestSchemaGrowsWhileEventsFlow(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.Lanes = 1
	e := start(t, topic)
	e.router()
	stopSink := e.sink()
	before := e.producer("app")
	say := func(p *producer.Producer, message string) {
		t.Helper()
		ev := producer.Event{Message: message, Attrs: []producer.Attr{producer.Int64("status", 200), producer.String("env", "a")}}
		if err := p.Publish(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	say(before, "stored before")
	e.stored("app", 1, 20*time.Second)
	stopSink()
	say(before, "on its way before")

	topic.Fields = []schemas.Field{{Name: "status", Type: schemas.TypeInt64}}
	if _, _, err := e.reg.Apply(t.Context(), topic, false); err != nil {
		t.Fatal(err)
	}
	say(before, "by a producer that does not know")
	say(e.producer("app"), "after")
	r := e.following()
	check := func(stage string) {
		t.Helper()
		for where, want := range map[string]int{"status = 200": 4, "status = 0": 0, "attributes.status = '200'": 3, "": 4} {
			page, err := r.Query(t.Context(), query.Request{Topic: "app", Where: where, Fields: []string{"message", "status"}})
			if err != nil || len(page.Events) != want {
				t.Errorf("%s: %q finds %d events, want %d (%v)", stage, where, len(page.Events), want, err)
				continue
			}
			if want == 0 {
				continue
			}
			var ev struct {
				Message string
				Status  int
			}
			if err := json.Unmarshal(page.Events[0], &ev); err != nil || ev.Status != 200 {
				t.Errorf("%s: %q finds %s (%v)", stage, where, page.Events[0], err)
			}
		}
	}
	// The table has no such column yet; a reader that finds one makes do.
	fresh, err := e.reg.Topic(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.db.Ensure(t.Context(), &fresh); err != nil {
		t.Fatal(err)
	}
	check("on the way")
	e.sink()
	e.stored("app", 4, 20*time.Second)
	check("stored")
	nc := e.connect()
	if _, err := rebuild.Run(t.Context(), rebuild.Config{NATS: nc, Registry: e.registry(nc), DB: e.db}, "app", true); err != nil {
		t.Fatal(err)
	}
	check("rebuilt")

	opts, err := ch.ParseDSN(e.srv.ReaderDSN)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := ch.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	one := func(q string) (n uint64) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), q).Scan(&n); err != nil {
			t.Errorf("%s: %v", q, err)
		}
		return n
	}
	eventually(t, 10*time.Second, func() error { // the process that ensured the table may still be at its views
		var n uint64
		err := conn.QueryRow(t.Context(), "SELECT toUInt64(count()) FROM app_recent WHERE status IN (0, 200)").Scan(&n)
		if err == nil && n != 4 {
			err = fmt.Errorf("app_recent has %d events", n)
		}
		return err
	})
	if got := one("SELECT toUInt64(sum(status)) FROM app_recent"); got != 800 {
		t.Errorf("the sum of the new field is %d in app_recent, want 800", got)
	}
	if got := one("SELECT sum(stored_rows) FROM almanac_shards WHERE topic = 'app' AND month = toYYYYMM(now('UTC'))"); got != 4 {
		t.Errorf("almanac_shards has %d rows, want 4", got)
	}
	if got := one("SELECT toUInt64(event_lag_seconds < 600 AND stored_rows = 4) FROM almanac_lag WHERE topic = 'app'"); got != 1 {
		t.Error("almanac_lag does not know that app is fresh")
	}
	for _, q := range []string{"INSERT INTO app (message) VALUES ('x')", "ALTER TABLE app DROP COLUMN status", "DROP VIEW app_recent", "SELECT * FROM url('http://127.0.0.1:1', CSV, 'x Int8')", "SELECT number FROM numbers(3000000)"} {
		rows, err := conn.Query(t.Context(), q)
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
			_ = rows.Close()
		}
		if err == nil {
			t.Errorf("the read-only account may do: %s", q)
		}
	}
}

// A range over months asks each month's registry and merges; one month's range
// reads that month's shards alone, and ClickHouse's plan has no part of another.
func TestMonthsArePruned(t *testing.T) {
	t.Parallel()
	e := running(t, oneLane("app", 0))
	p := e.producer("app")
	months := []string{"2026-01", "2026-02", "2026-03", "2026-04"}
	for i := range 400 {
		p.Log(producer.Event{Time: at(t, months[i%4]+"-10T00:00:00Z").Add(time.Duration(i) * time.Minute), Message: months[i%4]})
	}
	e.flush(p)
	e.stored("app", 400, 20*time.Second)
	r := e.following()
	events, shards := e.answer(r, query.Request{Topic: "app", From: at(t, "2026-02-01T00:00:00Z"), To: at(t, "2026-04-30T00:00:00Z"), Limit: 130})
	if len(events) != 300 || events[0]["message"] != "2026-04" || events[299]["message"] != "2026-02" {
		t.Errorf("three months have %d events", len(events))
	}
	if strings.Contains(fmt.Sprint(shards), ":2026-01:") {
		t.Errorf("January was read too: %v", shards)
	}
	one := query.Request{Topic: "app", From: at(t, "2026-02-01T00:00:00Z"), To: at(t, "2026-02-28T00:00:00Z"), Limit: 1000}
	events, shards = e.answer(r, one)
	if len(events) != 100 || len(shards) != 1 || !strings.Contains(shards[0], ":2026-02:") {
		t.Errorf("February has %d events in %v", len(events), shards)
	}
	// Each month is a partition, so that no merge leaves fewer than four parts; February's become one.
	e.exec("OPTIMIZE TABLE %s PARTITION ID '%s' FINAL", e.table("app"), schemas.PartitionID(202602, e.shards("app")[1].ID))
	plan, err := r.Explain(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	if all := e.count("SELECT count() FROM system.parts WHERE active AND database = '%s' AND table = 'app'", e.srv.Database); plan.Parts == 0 || plan.Parts >= all || plan.Rows != 100 {
		t.Errorf("of %d parts the plan reads %d with %d rows, want February's 100 rows", all, plan.Parts, plan.Rows)
	}
}
