package integration

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// A topic that lets SQL be a minute old gets few inserts; a reader that waits for SQL has
// everything at once all the same.
func TestSQLFreshReaderWaits(t *testing.T) {
	t.Parallel()
	topic := newTopic("slow")
	topic.Lanes, topic.SQLFresh = 1, time.Minute
	e := start(t, topic)
	e.router()
	stored := make(chan uint64, 100)
	e.sink(func(c *sinkConfig) {
		c.Linger = 0 // as the topic says
		c.Hooks.Stored = func(_ schemas.ShardRef, rows, _ uint64, _ time.Duration) { stored <- rows }
	})
	p := e.producer("slow")
	log := func(n int) {
		t.Helper()
		for range n {
			p.Log(schemas.Event{Message: "m", UserID: "u"})
		}
		e.flush(p)
	}
	log(1) // stored after a quiet time, by a sink that begins
	select {
	case <-stored:
	case <-time.After(maxWait * 30 * time.Second):
		t.Fatal("the first event was not stored")
	}
	log(5)
	nc := e.connect()
	r, err := query.New(nc, e.registry(nc), e.db)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	pending, err := r.WaitStored(t.Context(), []string{"slow"}, maxWait*30*time.Second, nil)
	if err != nil || pending != 0 {
		t.Fatalf("%d events wait after %s: %v", pending, time.Since(began), err)
	}
	if n := e.count("SELECT count() FROM %s", sql.QuotedTable(e.srv.Database, "slow")); n != 6 {
		t.Errorf("%d events are stored, want 6", n)
	}
}
