package integration

import (
	"fmt"

	"testing"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// TestHistogramOfAZone counts days, weeks and months around both changes of Vienna's clocks, from frames and
// from ClickHouse.
func TestHistogramOfAZone(t *testing.T) {
	t.Parallel()
	e := start(t, schemas.NewTopic("app"))
	r := e.following()
	p := e.producer("app")
	vienna, err := time.LoadLocation("Europe/Vienna")
	if err != nil {
		t.Skip(err)
	}
	total := uint64(0)
	for _, begin := range []time.Time{time.Date(2026, 3, 28, 0, 0, 0, 0, vienna), time.Date(2026, 10, 24, 0, 0, 0, 0, vienna)} {
		for at := begin; at.Before(begin.AddDate(0, 0, 3)); at = at.Add(time.Hour) {
			p.Log(producer.Event{Time: at, Message: "m"})
			total++
		}
	}
	e.flush(p)
	// non-empty buckets, as local date and count
	count := func(step, zone string) (got []string) {
		t.Helper()
		s, err := query.ParseStep(step, zone)
		if err != nil {
			t.Fatal(err)
		}
		h, err := r.Histogram(t.Context(), query.HistogramRequest{Topic: "app", Step: s})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range h.Buckets {
			if b.Count > 0 {
				got = append(got, fmt.Sprint(b.At.In(s.Zone).Format("2006-01-02T15"), " ", b.Count))
			}
		}
		return got
	}
	check := func(what string) {
		t.Helper()
		for _, c := range []struct{ step, zone, want string }{
			{"1d", "Europe/Vienna", "[2026-03-28T00 24 2026-03-29T00 23 2026-03-30T00 24 2026-10-24T00 24 2026-10-25T00 25 2026-10-26T00 24]"},
			{"7d", "Europe/Vienna", "[2026-03-23T00 47 2026-03-30T00 24 2026-10-19T00 49 2026-10-26T00 24]"},
			{"1mo", "Europe/Vienna", "[2026-03-01T00 71 2026-10-01T00 73]"},
			{"3mo", "", "[2026-01-01T00 71 2026-10-01T00 73]"},
			{"1d", "", "[2026-03-27T00 1 2026-03-28T00 24 2026-03-29T00 24 2026-03-30T00 22 2026-10-23T00 2 2026-10-24T00 24 2026-10-25T00 24 2026-10-26T00 23]"},
			{"1d", "Pacific/Kiritimati", "[2026-03-28T00 11 2026-03-29T00 24 2026-03-30T00 24 2026-03-31T00 12 2026-10-24T00 12 2026-10-25T00 24 2026-10-26T00 24 2026-10-27T00 13]"},
		} {
			if got := fmt.Sprint(count(c.step, c.zone)); got != c.want {
				t.Errorf("%s, steps of %s in %q:\n%s\nexpected\n%s", what, c.step, c.zone, got, c.want)
			}
		}
	}
	check("on its way")
	e.router()
	e.sink()
	eventually(t, 20*time.Second, func() error {
		if n := e.countOrNone("app"); n != total {
			return fmt.Errorf("%d of %d rows are stored", n, total)
		}
		return nil
	})
	check("stored")
}
