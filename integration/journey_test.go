package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

// The way of an event, from Log to SQL.
func TestJourney(t *testing.T) {
	t.Parallel()
	e := running(t, newTopic("app", schemas.Field{Name: "duration_ms", Type: schemas.TypeFloat64}))
	p := e.producer("app")
	const n = 100_000
	began := time.Now()
	for i := range n {
		p.Log(producer.Event{
			Type: "login", UserID: fmt.Sprintf("u-%d", i%1000), Message: "hello", Level: "info",
			Attrs: []schemas.Attr{schemas.Float64("duration_ms", float64(i)), schemas.String("ip", "10.0.0.1")},
		})
	}
	e.flush(p)
	t.Logf("accepted after %s", time.Since(began))
	e.stored("app", n, 30*time.Second)
	t.Logf("stored after %s", time.Since(began))
	if got := e.count("SELECT uniqExact(id) FROM %s", e.table("app")); got != n {
		t.Errorf("%d distinct ids, want %d", got, n)
	}
	if got := e.count("SELECT toUInt64(sum(duration_ms)) FROM %s", e.table("app")); got != n*(n-1)/2 {
		t.Errorf("sum of duration_ms = %d, want %d", got, uint64(n)*(n-1)/2)
	}
	if got := e.count("SELECT countIf(attributes['ip'] = '10.0.0.1' AND service = 'test' AND type = 'login') FROM %s", e.table("app")); got != n {
		t.Errorf("%d rows came out whole, want %d", got, n)
	}
}

// A topic that is declared while a router runs is routed at once, not at the router's next look.
func TestNewTopicIsRoutedAtOnce(t *testing.T) {
	t.Parallel()
	e := start(t)
	e.router(func(c *router.Config) { c.Discover = time.Hour })
	e.sink()
	e.apply(newTopic("app"))
	e.say(e.producer("app"), 5)
	e.stored("app", 5, time.Minute)
}
