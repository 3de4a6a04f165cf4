package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/producer"
)

// logqlLargeEnv is how many rows TestLogQLLarge has; make logql-large says 10,000,000.
const logqlLargeEnv = "ALMANAC_LOGQL_LARGE"

// logqlServices is how many services wrote the rows.
const logqlServices = 20

// What Grafana asks by Loki's API of a day with many rows is answered within its bar. Each is asked six times; the first does not count.
// The figures are printed.
func TestLogQLLarge(t *testing.T) {
	t.Parallel()
	rows, err := strconv.Atoi(os.Getenv(logqlLargeEnv))
	if err != nil {
		t.Skip(logqlLargeEnv + " says how many rows; make logql-large sets it")
	}
	b := newBox(t)
	b.up("--events-bytes", "4GiB", "--shards-bytes", "8GiB")
	began := time.Now()
	end := began.Truncate(time.Second)
	b.day(end, rows)
	t.Logf("%d rows of a day were sent and stored in %s", rows, time.Since(began).Round(time.Second))
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, path string
		query      url.Values
		over, bar  time.Duration
		results    int
	}{
		{"lines of one service's last hour", "query_range", url.Values{"query": {`{service="s-7"}`}, "limit": {"1000"}}, time.Hour, time.Second, 1},
		{"its lines that have a text", "query_range", url.Values{"query": {`{service="s-7"} |= "took 1"`}, "limit": {"1000"}}, time.Hour, time.Second, 1},
		{"its lines by the minute", "query_range", url.Values{"query": {`sum by (level) (count_over_time({service="s-7"} [1m]))`}, "step": {"60"}}, time.Hour, time.Second, 2},
		{"the volume of the day by service", "index/volume", url.Values{"query": {`{topic="app"}`}, "targetLabels": {"service"}}, 24 * time.Hour, 1500 * time.Millisecond, logqlServices},
		{"the volume of the day by the hour", "index/volume_range", url.Values{"query": {`{topic="app"}`}, "targetLabels": {"service"}, "step": {"3600"}}, 24 * time.Hour, 1500 * time.Millisecond, logqlServices},
		{"the labels", "labels", url.Values{}, 24 * time.Hour, 200 * time.Millisecond, 1},
	} {
		c.query.Set("start", strconv.FormatInt(end.Add(-c.over).UnixNano(), 10))
		c.query.Set("end", strconv.FormatInt(end.UnixNano(), 10))
		var took []time.Duration
		for range 6 {
			asked := time.Now()
			n := b.lokiResults(a.HTTP + "/loki/api/v1/" + c.path + "?" + c.query.Encode())
			took = append(took, time.Since(asked))
			if n < c.results {
				t.Fatalf("%s: %d results, want %d at least", c.what, n, c.results)
			}
		}
		took = slices.Sorted(slices.Values(took[1:]))
		t.Logf("%s: %d ms, the slowest %d ms; the bar is %d ms", c.what, took[len(took)/2].Milliseconds(), took[len(took)-1].Milliseconds(), c.bar.Milliseconds())
		if took[len(took)/2] > c.bar {
			t.Errorf("%s took %s, more than %s", c.what, took[len(took)/2].Round(time.Millisecond), c.bar)
		}
	}
}

// day sends n events of the day before a time, by many services, in the order of their times, and waits until they are stored.
func (b *box) day(end time.Time, n int) {
	b.t.Helper()
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), maxWait)
	defer cancel()
	p, err := producer.Connect(ctx, a.NATS, producer.Config{Topic: "app", Policy: producer.Block})
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range n {
		mixed := uint64(i) * 0x9E3779B97F4A7C15 // the same rows each time, and not in an order that compresses them away
		p.Log(producer.Event{
			Time: end.Add(-24*time.Hour + time.Duration(float64(24*time.Hour)*float64(i)/float64(n))), Service: fmt.Sprintf("s-%d", mixed>>32%logqlServices),
			Level: []string{"info", "info", "info", "error"}[mixed>>30&3], Type: "request", UserID: fmt.Sprintf("u-%d", mixed>>44), Message: fmt.Sprintf("/items/%d took %d µs", i, mixed>>40&0xFFFF),
		})
	}
	if err := p.Flush(ctx); err != nil {
		b.t.Fatal(err)
	}
	if s := p.Stats(); len(s.Dropped) > 0 {
		b.t.Fatalf("events were dropped: %v", s.Dropped)
	}
	if err := p.Close(ctx); err != nil {
		b.t.Fatal(err)
	}
	b.inTheEnd(uint64(n))
}

// lokiResults is how many results an answer of Loki's API has.
func (b *box) lokiResults(address string) int {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %d %.500s %v", address, resp.StatusCode, body, err)
	}
	var list struct{ Data []json.RawMessage }
	if json.Unmarshal(body, &list) == nil {
		return len(list.Data)
	}
	var answer struct {
		Data struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		b.t.Fatalf("%s: %v: %.500s", address, err, body)
	}
	return len(answer.Data.Result)
}
