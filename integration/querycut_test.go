package integration

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// EVENTS loses its end and gives sequences again, and no router has come to that yet:
// queries and counts show what was accepted since, by the decision that the router will
// make, once, before and after it makes it.
func TestQueryBetweenACutAndTheRouter(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]int{"fewer since": 20, "more since": 90} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := newTopic("app")
			topic.Lanes = 2
			d := startOnDisk(t, topic)
			stopRouter, stopSink := d.router(), d.sink()
			d.both(60, 0, "before")
			d.stored("app", 60, 30*time.Second)
			stopRouter()
			stopSink()
			d.cut(schemas.StreamEvents)
			r := d.reader()
			check := func(when string, want int) {
				t.Helper()
				var users []string
				for page := (&query.Page{}); ; {
					var err error
					if page, err = r.Query(t.Context(), query.Request{Topic: "app", Limit: query.MaxLimit, Cursor: page.Cursor}); err != nil {
						t.Fatal(err)
					}
					for _, e := range page.Events {
						users = append(users, string(e))
					}
					if page.Cursor == "" {
						break
					}
				}
				if len(users) != want || len(unique(users)) != want {
					t.Errorf("%s: a query finds %d events (%d distinct), want %d", when, len(users), len(unique(users)), want)
				}
				n, err := r.Histogram(t.Context(), query.HistogramRequest{Topic: "app"})
				if err != nil || n.Count != uint64(want) {
					t.Errorf("%s: %d events are counted, want %d (%v)", when, n.Count, want, err)
				}
			}
			check("after the cut", 60)
			d.both(since, 0, "since")
			check("before the router", 60+since)
			check("once more", 60+since)
			stopRouter = d.router()
			d.sink()
			d.stored("app", uint64(60+since), 30*time.Second)
			check("after the router", 60+since)
			stopRouter()
			d.both(5, 0, "later")
			check("behind the router", 65+since)
		})
	}
}
