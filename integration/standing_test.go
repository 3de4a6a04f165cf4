package integration

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// lonelyOn is a reader that reads nothing ahead of queries: what one read serves the
// next until it is as old as it may get.
func (e *env) lonelyOn(nc *nats.Conn) *query.Reader {
	e.t.Helper()
	r, err := query.NewFollowing(nc, e.connect(), e.registry(nc), e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(r.Close)
	return r
}

func (e *env) lonely() *query.Reader { return e.lonelyOn(e.connect()) }

// sees fails the test unless a reader finds the events of these users, and counts them.
func (e *env) sees(r *query.Reader, want ...string) {
	e.t.Helper()
	got, err := e.users(r)
	if err != nil {
		e.t.Fatal(err)
	}
	seen := unique(got)
	for _, u := range want {
		if !seen[u] {
			e.t.Errorf("%s is not among %v", u, got)
		}
	}
	if len(got) != len(want) {
		e.t.Errorf("%d events, want %d: %v", len(got), len(want), got)
	}
	counted, err := answered(func() (*query.Histogram, error) {
		return r.Histogram(e.t.Context(), query.HistogramRequest{Topic: "app"})
	})
	if err != nil {
		e.t.Fatal(err)
	}
	if counted.Count != uint64(len(want)) && len(counted.Notes) == 0 {
		e.t.Errorf("%d events are counted, want %d", counted.Count, len(want))
	}
}

// frameOf publishes a frame with an event of each user.
func (e *env) frameOf(users ...string) {
	e.t.Helper()
	p := e.producer("app", wholeFrames)
	for _, u := range users {
		p.Log(producer.Event{UserID: u, Message: "x"})
	}
	e.flush(p)
}

// What waited when a reader asked ClickHouse is stored, and the rows that carried the
// head, which came behind it, are erased: a floor stands for them.
func TestSnapshotWhileErased(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.router()
	e.frameOf("kept")
	e.routed("app", 1)
	r := e.lonely()
	e.sees(r, "kept")
	e.sink()
	e.stored("app", 1, 20*time.Second)
	e.frameOf("gone")
	e.stored("app", 2, 20*time.Second)
	e.erase(erasure.Request{Topic: "app", Users: []string{"gone"}})
	e.sees(r, "kept")
}

// A frame that was routed, stored and half erased since a reader read the checkpoints
// is met in EVENTS and in ClickHouse.
func TestSnapshotBeforeAllWasErased(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.frameOf("gone", "kept")
	r := e.lonely()
	e.sees(r, "gone", "kept")
	e.router()
	e.sink()
	e.stored("app", 2, 20*time.Second)
	e.erase(erasure.Request{Topic: "app", Users: []string{"gone"}})
	e.sees(r, "kept")
}

// What a reader saw waiting in SHARDS is stored and purged since.
func TestSnapshotWhilePurged(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.router()
	for _, u := range []string{"a", "b", "c"} {
		e.frameOf(u)
	}
	e.routed("app", 3)
	topic := oneLaneTopic()
	if err := e.db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	r := e.lonely()
	if _, err := r.Explain(t.Context(), query.Request{Topic: "app"}); err != nil { // opens no frames
		t.Fatal(err)
	}
	e.sink()
	e.stored("app", 3, 20*time.Second)
	shards := e.shards("app")
	stream, err := e.js().Stream(t.Context(), schemas.StreamShards)
	if err != nil {
		t.Fatal(err)
	}
	subject := schemas.ShardSubject("app", shards[0].Month, shards[0].ID)
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(subject), jetstream.WithPurgeKeep(1)); err != nil {
		t.Fatal(err)
	}
	e.sees(r, "a", "b", "c")
	e.sees(r, "a", "b", "c")
}

// A producer sends a frame again after what it holds was erased: the router will refuse
// it, and no reader may see it before.
func TestErasedIsSentAgain(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	stop := e.router()
	e.sink()
	at := time.Now()
	f, payload := frameOf(t, oneLaneTopic(), producer.Event{Time: at, UserID: "gone", Message: "x"})
	f.Producer, f.Seq = "p", 1
	subject := schemas.EventsSubject("app", schemas.MonthOf(at.UnixNano()), 0)
	e.publish(subject, string(payload), headersOf(f)...)
	e.stored("app", 1, 20*time.Second)
	e.erase(erasure.Request{Topic: "app", Users: []string{"gone"}})
	stop()
	e.publish(subject, string(payload), headersOf(f)...)
	e.sees(e.reader())
}
