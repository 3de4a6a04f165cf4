package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/query"
)

// ClickHouse answers, and refuses to say what it has. The report names it, and not NATS, and has what NATS says.
func TestLagNamesTheServerThatRefuses(t *testing.T) {
	t.Parallel()
	topic := oneLaneTopic()
	e := start(t, topic)
	e.router()
	if err := e.db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	e.publishOf("u-1", 3)
	e.routed("app", 3)
	r, err := query.New(e.connect(), e.reg, e.profiled(map[string]string{"max_ast_elements": "2"}))
	if err != nil {
		t.Fatal(err)
	}
	rep, err := r.Lag(t.Context(), "app")
	if err != nil || len(rep.Topics) != 1 || len(rep.Streams) != 2 || time.Since(rep.At) > time.Minute {
		t.Fatalf("%+v, %v: want what NATS says", rep, err)
	}
	if len(rep.Away) != 1 || rep.Away[0].Server != query.ServerClickHouse || !strings.Contains(rep.Away[0].Why, "what is stored") {
		t.Errorf("away are %+v, want ClickHouse, with why", rep.Away)
	}
	if rep.Topics[0].Unstored != nil {
		t.Errorf("%d events are said not to be stored, and nothing is known of that", *rep.Topics[0].Unstored)
	}
	for _, a := range r.Servers(t.Context()) {
		t.Errorf("it answers, and counts as away: %+v", a)
	}
}
