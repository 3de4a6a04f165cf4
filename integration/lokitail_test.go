package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// lokiTail is a client of Loki's tail.
type lokiTail struct {
	t    testing.TB
	conn *websocket.Conn
}

// tailLoki opens a tail; pairs are its parameters.
func tailLoki(t testing.TB, base string, header http.Header, pairs ...string) *lokiTail {
	t.Helper()
	conn, resp, err := dialLoki(t.Context(), base, header, pairs...) //nolint:bodyclose // the answer to a handshake has no body
	if err != nil {
		t.Fatalf("%v: %v %v", pairs, resp, err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &lokiTail{t, conn}
}

func dialLoki(ctx context.Context, base string, header http.Header, pairs ...string) (*websocket.Conn, *http.Response, error) {
	conn, resp, err := websocket.Dial(ctx, lokiTailURL(base, pairs...), &websocket.DialOptions{HTTPHeader: header})
	if conn != nil {
		conn.SetReadLimit(64 << 20)
	}
	return conn, resp, err
}

func lokiTailURL(base string, pairs ...string) string {
	params := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		params.Set(pairs[i], pairs[i+1])
	}
	return base + "/loki/api/v1/tail?" + params.Encode()
}

// lokiLine is a line as a client gets it.
type lokiLine struct {
	ts     int64
	line   string
	labels map[string]string
	more   map[string]any
}

// read reads one message.
func (l *lokiTail) read() (lines []lokiLine) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer cancel()
	kind, text, err := l.conn.Read(ctx)
	if err != nil || kind != websocket.MessageText {
		l.t.Fatalf("%v %v", kind, err)
	}
	var m struct {
		Streams []struct {
			Stream map[string]string
			Values [][]json.RawMessage
		}
		Dropped []any `json:"dropped_entries"`
	}
	if err := json.Unmarshal(text, &m); err != nil || len(m.Dropped) != 0 {
		l.t.Fatalf("%v: %s", err, text)
	}
	for _, s := range m.Streams {
		for _, v := range s.Values {
			var one lokiLine
			var ts string
			if err := errors.Join(json.Unmarshal(v[0], &ts), json.Unmarshal(v[1], &one.line)); err != nil {
				l.t.Fatalf("%v: %s", err, text)
			}
			if len(v) > 2 {
				if err := json.Unmarshal(v[2], &one.more); err != nil {
					l.t.Fatalf("%v: %s", err, text)
				}
			}
			one.ts, err = strconv.ParseInt(ts, 10, 64)
			if err != nil {
				l.t.Fatal(err)
			}
			one.labels = s.Stream
			lines = append(lines, one)
		}
	}
	return lines
}

// some reads until there are n lines.
func (l *lokiTail) some(n int) (lines []lokiLine) {
	l.t.Helper()
	for len(lines) < n {
		lines = append(lines, l.read()...)
	}
	return lines
}

func lokiTexts(lines []lokiLine) (out []string) {
	for _, l := range lines {
		out = append(out, l.line)
	}
	return out
}

// TestLokiTail follows topics by Loki's WebSocket.
func TestLokiTail(t *testing.T) {
	t.Parallel()
	topic, other := newTopic("app", schemas.Field{Name: "endpoint", Type: schemas.TypeLowCardinality}), newTopic("web")
	topic.Lanes = 1 // so that events are routed in the order in which they were accepted
	other.Lanes = 1
	e := start(t, topic, other)
	e.router()
	base, stop := e.gateway()
	begin := time.Now().Add(-30 * time.Minute)
	producers := map[string]*producer.Producer{"app": e.producer("app"), "web": e.producer("web")}
	n := 0
	publish := func(to, line string) {
		t.Helper()
		n++
		ev := producer.Event{Time: begin.Add(time.Duration(n) * time.Millisecond), Service: "api", Level: "info", Message: line, Attrs: []schemas.Attr{schemas.String("host", "h-1")}}
		if err := producers[to].Publish(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"a 1", "a 2", "b 3", "a 4", `{"took":5}`} {
		publish("app", line)
	}
	publish("web", "a 6")

	t.Run("the newest lines before, then what comes", func(t *testing.T) {
		l := tailLoki(t, base, nil, "query", `{topic="app"} |= "a "`, "limit", "2")
		if got := lokiTexts(l.some(2)); !slices.Equal(got, []string{"a 2", "a 4"}) {
			t.Errorf("%q", got)
		}
		publish("app", "b 7")
		publish("web", "a 8")
		publish("app", "a 9")
		if got := l.some(1); len(got) != 1 || got[0].line != "a 9" || got[0].labels["host"] != "h-1" || got[0].labels["level"] != "info" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("several topics, stages, labels apart", func(t *testing.T) {
		at := strconv.FormatInt(time.Now().UnixNano(), 10)
		l := tailLoki(t, base, http.Header{"X-Loki-Response-Encoding-Flags": {"categorize-labels"}}, "query", `{service="api"} | json | took > 3 | line_format "{{.took}} of {{.topic}}"`, "start", at, "delay_for", "1")
		publish("web", `{"took":3}`)
		publish("web", `{"took":4}`)
		publish("app", `{"took":5}`)
		got := l.some(2)
		lines := lokiTexts(got)
		slices.Sort(lines)
		if !slices.Equal(lines, []string{"4 of web", "5 of app"}) {
			t.Errorf("%q", lines)
		}
		parsed, _ := got[0].more["parsed"].(map[string]any)
		structured, _ := got[0].more["structuredMetadata"].(map[string]any)
		if parsed["took"] == nil || structured["host"] != "h-1" || got[0].labels["host"] != "" || got[0].labels["topic"] == "" {
			t.Errorf("%+v", got[0])
		}
	})
	t.Run("refused", func(t *testing.T) {
		for name, c := range map[string]struct {
			status int
			says   string
			header http.Header
			pairs  []string
		}{
			"numbers":              {400, "numbers", nil, []string{"query", `rate({}[1m])`}},
			"a wrong query":        {400, "parse error", nil, []string{"query", `{`}},
			"a long delay":         {400, "from 0 to 5", nil, []string{"query", `{}`, "delay_for", "6"}},
			"a wrong start":        {400, "could not parse", nil, []string{"query", `{}`, "start", "x"}},
			"too many lines":       {400, "max entries limit", nil, []string{"query", `{}`, "limit", "5001"}},
			"a topic not there":    {404, "almanac topics apply", http.Header{"X-Scope-Orgid": {"nothing"}}, []string{"query", `{}`}},
			"a page elsewhere":     {403, "another origin", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"websocket"}, "Origin": {"http://evil.example"}}, []string{"query", `{}`}},
			"an old browser":       {403, "another origin", http.Header{"Origin": {"http://evil.example"}}, []string{"query", `{}`}},
			"a page of no origin":  {403, "another origin", http.Header{"Origin": {"null"}}, []string{"query", `{}`}},
			"another site, behind": {403, "another origin", http.Header{"Sec-Fetch-Site": {"same-site"}}, []string{"query", `{}`}},
		} {
			conn, resp, err := dialLoki(t.Context(), base, c.header, c.pairs...) //nolint:bodyclose // the answer to a handshake has no body
			if err == nil {
				_ = conn.CloseNow()
				t.Errorf("%s: it opened", name)
				continue
			}
			text := ""
			if resp != nil && resp.Body != nil {
				body, _ := io.ReadAll(resp.Body)
				text = string(body)
			}
			if resp == nil || resp.StatusCode != c.status || !strings.Contains(text, c.says) {
				t.Errorf("%s: %v %q, want %d and %q", name, resp, text, c.status, c.says)
			}
		}
		e := &lokiAsker{t, base}
		e.get(http.StatusUpgradeRequired, "/loki/api/v1/tail?query={}", "WebSocket")
	})
	t.Run("cut again and again", func(t *testing.T) { e.cutLoki(t, base) })
	t.Run("a gateway that stops", func(t *testing.T) {
		l := tailLoki(t, base, nil, "query", `{topic="app"}`, "limit", "1")
		l.some(1)
		ended := make(chan error, 1)
		go func() {
			_, _, err := l.conn.Read(t.Context())
			ended <- err
		}()
		stop()
		// Broken off, and not closed: logcli comes back after the one, and ends after the other.
		if err := <-ended; err == nil || websocket.CloseStatus(err) != -1 {
			t.Errorf("%v", err)
		}
	})
}

// lokiAsker makes plain requests.
type lokiAsker struct {
	t    *testing.T
	base string
}

func (a *lokiAsker) get(status int, path, says string) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, a.base+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != status || !strings.Contains(string(text), says) {
		a.t.Errorf("%s: %d %s, want %d and %q", path, resp.StatusCode, text, status, says)
	}
}

// cutConn is a connection that breaks off within what comes. It gives a few bytes at a time, so that its reader has little more than it read.
type cutConn struct {
	net.Conn
	mu   sync.Mutex
	left int // until it breaks off; below 0: it does not
}

// ahead is how much its reader may have taken of what it did not read yet.
const ahead = 16

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), ahead)])
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left < 0 || n <= c.left {
		if c.left > 0 {
			c.left -= n
		}
		return n, err
	}
	_ = c.Close()
	return c.left, io.ErrUnexpectedEOF
}

// after breaks the connection off after so many bytes.
func (c *cutConn) after(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = n
}

// tailLokiBy is tailLoki by a connection that can be cut.
func tailLokiBy(t testing.TB, base string, pairs ...string) (*lokiTail, *cutConn) {
	t.Helper()
	var c *cutConn
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c = &cutConn{Conn: conn, left: -1}
		return c, nil
	}}}
	conn, resp, err := websocket.Dial(t.Context(), lokiTailURL(base, pairs...), &websocket.DialOptions{HTTPClient: client}) //nolint:bodyclose // the answer to a handshake has no body
	if err != nil {
		t.Fatalf("%v: %v %v", pairs, resp, err)
	}
	conn.SetReadLimit(64 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &lokiTail{t, conn}, c
}

// cutLoki cuts a tail a hundred times, every other one within a message. The client asks again from the time of its last whole line and a
// nanosecond, which is all that Loki's protocol has to go on by: logcli asks from the time itself, and shows the last line twice. Each
// event has a time of its own.
func (e *env) cutLoki(t *testing.T, base string) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	const cuts, each = 100, 20
	padding := strings.Repeat("x", 200) // a message of one line is longer than where it is cut
	text := func(i int) string { return fmt.Sprint("cut ", i, " ", padding) }
	p := e.producer("app")
	begin := time.Now()
	more, sent := make(chan struct{}, 2*cuts+1), make(chan error, 1)
	go func() { // beside the client, and never more ahead of it than a tail's limit
		i := 0
		for range more {
			for range each {
				i++
				p.Log(producer.Event{Time: begin.Add(time.Duration(i) * time.Microsecond), Message: text(i)})
			}
			if err := p.Flush(t.Context()); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	var got []lokiLine
	last := begin.UnixNano()
	client := func(lines int, within bool) {
		l, conn := tailLokiBy(t, base, "query", `{topic="app"} |= "cut "`, "limit", "5000", "start", strconv.FormatInt(last+1, 10))
		defer func() { _ = l.conn.CloseNow() }()
		for n := 0; n < lines; {
			some := l.read()
			n += len(some)
			for i := range some {
				last = max(last, some[i].ts)
			}
			got = append(got, some...)
		}
		if !within {
			return
		}
		conn.after(1 + rng.IntN(len(padding)-ahead))
		more <- struct{}{} // else nothing may come any more
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if kind, whole, err := l.conn.Read(ctx); err == nil || ctx.Err() != nil {
			t.Errorf("a message of %v was to be cut: %d bytes, %v", kind, len(whole), err)
		}
	}
	all := 0
	for i := range cuts {
		more <- struct{}{}
		within := i%2 == 0
		client(1+rng.IntN(each/2), within) // as many are on their way, whatever the last client had
		all += each
		if within {
			all += each
		}
	}
	more <- struct{}{}
	all += each
	close(more)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	for len(got) < all {
		client(all-len(got), false)
	}
	if len(got) != all {
		t.Errorf("%d lines, want %d", len(got), all)
	}
	for i := range got {
		if got[i].line != text(i+1) {
			t.Fatalf("line %d is %.20q, want %.20q", i, got[i].line, text(i+1))
		}
	}
}
