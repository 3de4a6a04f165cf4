package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/audit"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Rows that are lost and stored again, by a sink or a repair, stand at other positions than before, as many as they
// were. What was derived of them is derived again, also where rollups never saw that they were gone: else copies would count
// for good.
func TestMarksOfLostRows(t *testing.T) {
	t.Parallel()
	topic, err := schemas.Topic{Name: "trail", Kind: kinds.Audit, Lanes: 1}.Declared()
	if err != nil {
		t.Fatal(err)
	}
	e := start(t, topic)
	e.router()
	stopSink, stopRollups := e.sink(), e.rollups()
	const events, times = 20, 3
	p := e.producer("trail")
	for range times { // an insert each
		for i := range events {
			ev, err := audit.Activity{Type: "log", Request: fmt.Sprint("r-", i), Scope: "s", Time: time.Date(2026, 2, 1, 12, 0, i, 0, time.UTC)}.Event()
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Submit(t.Context(), ev, nil); err != nil {
				t.Fatal(err)
			}
		}
		e.flush(p)
		e.finalUsage("trail")
	}
	check := func(when string) {
		t.Helper()
		e.examined("trail")
		stopRollups()
		if n := e.count("SELECT count() FROM %s", e.table("trail"+schemas.ViewOnce)); n != events {
			t.Errorf("%s: %d events count, want %d", when, n, events)
		}
		if n, marked := e.count("SELECT count() FROM %s", e.table("trail")), e.count("SELECT uniqExact(id, shard, pos) FROM %s WHERE id != %s", e.table("trail.repeats"), sql.NoID); n != times*events || marked != (times-1)*events {
			t.Errorf("%s: %d rows, %d of them marked", when, n, marked)
		}
	}
	check("at first")
	for name, again := range map[string]func(){
		"by a sink":   func() { stopSink = e.sink(); e.finalUsage("trail") },
		"by a repair": func() { e.repaired(times * events) },
	} {
		stopSink()
		e.exec("TRUNCATE TABLE %s", e.table("trail"))
		again()
		stopRollups = e.rollups()
		check(name)
	}
}
