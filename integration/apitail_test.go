package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// tailCuts is how often the tail is cut.
const tailCuts = 100

// A tail over HTTP that is cut at random bytes and resumed by Last-Event-ID has every
// event, and none twice.
func TestTailCut(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.Lanes = 2
	e := start(t, topic)
	e.router()
	base, _ := e.gateway()
	p := e.producer("app")
	const n = 8000
	sent := make(chan error, 1)
	go func() {
		for i := range n {
			if i%20 == 0 {
				if err := p.Publish(t.Context(), producer.Event{Message: fmt.Sprint(i), UserID: fmt.Sprint("u-", i%7)}); err != nil {
					sent <- err
					return
				}
				continue
			}
			p.Log(producer.Event{Message: fmt.Sprint(i), UserID: fmt.Sprint("u-", i%7)})
		}
		sent <- p.Flush(t.Context())
	}()
	rnd := rand.New(rand.NewPCG(1, 2)) // a plan of cuts
	seen := map[string]int{}
	last, cuts := "", 0
	for deadline := time.Now().Add(5 * time.Minute); len(seen) < n && time.Now().Before(deadline); cuts++ {
		most := int64(1 << 30)
		if cuts < tailCuts {
			most = 200 + rnd.Int64N(4000)
		}
		var err error
		if last, err = tailUntil(t.Context(), base, last, most, seen, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if cuts < tailCuts || len(seen) != n {
		t.Errorf("%d of %d events after %d cuts", len(seen), n, cuts)
	}
	for message, times := range seen {
		if times != 1 {
			t.Errorf("event %s came %d times", message, times)
		}
	}
	t.Logf("%d events, %d cuts", len(seen), cuts)
}

// tailUntil reads at most so many bytes of a tail and returns the last position.
func tailUntil(ctx context.Context, base, last string, most int64, seen map[string]int, n int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/topics/app/tail?since=-1h&fields=message", nil)
	if err != nil {
		return last, err
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return last, err
	}
	defer func() { _ = resp.Body.Close() }()
	in := bufio.NewReader(io.LimitReader(resp.Body, most))
	id, data := "", ""
	for len(seen) < n {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return last, nil // cut, perhaps inside an event, which then does not count
		}
		if err != nil {
			return last, err
		}
		switch {
		case strings.HasPrefix(line, "id: "):
			id = strings.TrimSpace(line[4:])
		case strings.HasPrefix(line, "data: "):
			data = line[6:]
		case line == "\n" && data != "":
			var ev struct{ Message string }
			if err := json.Unmarshal([]byte(data), &ev); err != nil {
				return last, err
			}
			seen[ev.Message]++
			last, data = id, ""
		}
	}
	return last, nil
}

// Pages over HTTP are the pages of package query, which the verb prints, byte for byte.
func TestPagesOverHTTP(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"))
	e.router()
	e.sink()
	base, _ := e.gateway()
	p := e.producer("app")
	for i := range 250 {
		ev := producer.Event{Message: fmt.Sprintf("m %d <b> & \u2028 \\ \"q\" é \xff", i), UserID: fmt.Sprint(i % 5), Attrs: []schemas.Attr{schemas.String("k<", "v>")}}
		if err := p.Publish(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	r := e.reader()
	if _, err := r.WaitStored(t.Context(), []string{"app"}, time.Minute, nil); err != nil {
		t.Fatal(err)
	}
	own, cursor, pages := "", "", 0 // a cursor has the time of its first page, so each has its own
	for ; ; pages++ {
		want, err := r.Query(t.Context(), query.Request{Topic: "app", Limit: 40, Cursor: own, Ascending: true})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/v1/topics/app/events?limit=40&order=asc&cursor="+cursor, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "application/x-ndjson")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		var lines strings.Builder
		for _, ev := range want.Events {
			lines.WriteString(string(ev) + "\n")
		}
		own, cursor = want.Cursor, resp.Header.Get("Almanac-Cursor")
		if err != nil || string(got) != lines.String() || (own == "") != (cursor == "") {
			t.Fatalf("page %d: %v, cursor %q, want %q\n%s\n%s", pages, err, cursor, own, got, lines.String())
		}
		if cursor == "" {
			break
		}
	}
	if pages < 5 {
		t.Errorf("only %d pages", pages)
	}
}
