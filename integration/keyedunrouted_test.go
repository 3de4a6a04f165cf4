package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// While no router runs, a keyed request that is sent again, and that NATS forgot, is not shown: not whom an erasure took of
// it, and the others once, as before. A request that is new is shown.
func TestUnroutedRepetitionIsNotShown(t *testing.T) {
	t.Parallel()
	d := startOnDisk(t, oneLaneTopic())
	stopRouter, stopSink := d.router(), d.sink()
	d.keyedBatch("k-1", "ann", "bea", "eve")
	d.keyedBatch("k-2", "cat", "cat") // what is stored after it: the last of a lane stays
	d.stored("app", 5, time.Minute)
	x := d.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: "app", Users: []string{"bea"}})
	if err == nil {
		job, err = x.Run(t.Context(), "app", job.ID)
	}
	if err == nil {
		job, err = x.Purge(t.Context(), "app", job.ID)
	}
	if err != nil || job.Purged.Events == 0 {
		t.Fatalf("%+v, %v", job, err)
	}
	// The last event of all says when a tail is over.
	d.keyedBatch("k-3", "end", "end")
	d.stored("app", 6, time.Minute)
	stopRouter()
	stopSink()
	d.damaged(schemas.StreamEvents, false, func(block []byte) []byte { return block }) // NATS starts again
	following := d.following()

	shown := func(when string, want ...string) {
		t.Helper()
		for name, r := range map[string]*query.Reader{"a verb": d.reader(), "a process": following} {
			for range 2 { // by what it kept, too
				users, err := d.users(r)
				if slices.Sort(users); err != nil || !slices.Equal(users, want) {
					t.Errorf("%s, %s: a page has %v, %v; want %v", when, name, users, err, want)
				}
			}
			counted, err := answered(func() (*query.Histogram, error) {
				return r.Histogram(t.Context(), query.HistogramRequest{Topic: "app"})
			})
			if err != nil || counted.Count != uint64(len(want)) {
				t.Errorf("%s, %s: %+v are counted, %v; want %d", when, name, counted, err, len(want))
			}
			counted, err = answered(func() (*query.Histogram, error) {
				return r.Histogram(t.Context(), query.HistogramRequest{Topic: "app", Where: "user_id = 'bea'"})
			})
			if err != nil || counted.Count != 0 {
				t.Errorf("%s, %s: %+v of the erased are counted, %v", when, name, counted, err)
			}
		}
	}
	pending := d.stream(schemas.StreamEvents).Msgs
	d.keyedBatch("k-1", "ann", "bea", "eve")
	if got := d.stream(schemas.StreamEvents).Msgs; got <= pending {
		t.Fatalf("EVENTS has %d messages, %d before: NATS knew the request", got, pending)
	}
	shown("repeated", "ann", "cat", "cat", "end", "end", "eve")
	d.keyedBatch("k-4", "dan", "dan")
	shown("another is new", "ann", "cat", "cat", "dan", "dan", "end", "end", "eve")
	if got := d.tailedUsers("k-3", "end"); slices.Contains(got, "bea") {
		t.Errorf("a tail has %v", got)
	}
	if n := d.sqlCount(following, "bea"); n != 0 {
		t.Errorf("SQL has %d of the erased", n)
	}

	d.router()
	d.sink()
	d.stored("app", 8, time.Minute)
	shown("routed", "ann", "cat", "cat", "dan", "dan", "end", "end", "eve")
	d.verified("app")
}

// tailedUsers are the users of what a tail has from the beginning of SHARDS to an event.
func (e *env) tailedUsers(message, user string) (users []string) {
	e.t.Helper()
	over := errors.New("over")
	err := e.reader().Tail(e.t.Context(), query.TailRequest{Topic: "app", From: "1.0"}, func(_ string, ev json.RawMessage) error {
		var got struct {
			User    string `json:"user_id"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(ev, &got); err != nil {
			return err
		}
		if got.User == user && got.Message == message {
			return over
		}
		users = append(users, got.User)
		return nil
	})
	if !errors.Is(err, over) {
		e.t.Fatal(err)
	}
	return users
}

// sqlCount is how many events of a user SQL has by a reader's door.
func (e *env) sqlCount(r *query.Reader, user string) int {
	e.t.Helper()
	body, err := r.SQL(e.t.Context(), query.SQLRequest{SQL: fmt.Sprintf("SELECT count() FROM %s WHERE user_id = '%s'", e.table("app"), user), Format: "TSV"})
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	var n int
	if _, err := fmt.Fscan(body, &n); err != nil {
		e.t.Fatal(err)
	}
	return n
}
