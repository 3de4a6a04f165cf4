package lines

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// serve is the input on a server of a test's own.
func serve(t *testing.T, cfg Config) (*pooltest.Env, func(query, contentType string, body io.Reader, headers ...string) (int, Answer)) {
	t.Helper()
	topic := schemas.NewTopic("app")
	topic.Fields = []schemas.Field{{Name: "duration_ms", Type: "float64"}}
	return serveTopic(t, cfg, topic)
}

func serveTopic(t *testing.T, cfg Config, topic schemas.Topic) (*pooltest.Env, func(query, contentType string, body io.Reader, headers ...string) (int, Answer)) {
	t.Helper()
	e := pooltest.Start(t, nil, topic)
	cfg.Pool = e.Pool
	mux := http.NewServeMux()
	mux.Handle("POST /v1/topics/{topic}/events", New(cfg))
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return e, func(query, contentType string, body io.Reader, headers ...string) (int, Answer) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v1/topics/app/events"+query, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", contentType)
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		var a Answer
		if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, a
	}
}

func messages(events []schemas.Event) []string {
	var out []string
	for i := range events {
		out = append(out, events[i].Message)
	}
	slices.Sort(out)
	return out
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query, contentType, body string
		want                     []string
		refused                  int
	}{
		"ndjson":                    {"", "application/x-ndjson", "{\"message\":\"a\"}\n{\"msg\":\"b\"}\n\n", []string{"a", "b"}, 0},
		"ndjson as json":            {"", "application/json", "{\"message\":\"a\"}\n{bad\n{\"msg\":\"b\"}", []string{"a", "b"}, 1},
		"one object":                {"", "application/json", "{\n \"message\": \"a\"\n}", []string{"a"}, 0},
		"an array":                  {"", "application/json", "[{\"message\":\"a\"},\n{\"message\":\"b\"}, 7]", []string{"a", "b"}, 1},
		"curl's own content type":   {"", "application/x-www-form-urlencoded", `{"message":"a"}`, []string{"a"}, 0},
		"text":                      {"", "text/plain", "a\nb\n", []string{"a", "b"}, 0},
		"text that begins records":  {"?multiline=%5E%5C%5B", "text/plain", "[1] a\n at b\n[2] c\n", []string{"[1] a\n at b", "[2] c"}, 0},
		"logfmt":                    {"?format=logfmt", "", "msg=a user_id=u\nmsg=b\n", []string{"a", "b"}, 0},
		"csv":                       {"", "text/csv", "message,n\na,1\nb,2\n", []string{"a", "b"}, 0},
		"a byte order mark":         {"", "application/json", "\xef\xbb\xbf[{\"message\":\"a\"}]", []string{"a"}, 0},
		"a broken end of an array":  {"", "application/json", "[{\"message\":\"a\"},{\"mess", []string{"a"}, 1},
		"no bytes":                  {"", "application/json", "", nil, 0},
		"a message of another type": {"?service=s", "application/json", `{"message":{"a":1}}`, []string{`{"a":1}`}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, post := serve(t, Config{})
			status, a := post(c.query, c.contentType, strings.NewReader(c.body))
			if status != http.StatusOK || a.Accepted != len(c.want) || a.Total != c.refused {
				t.Fatalf("%d %+v, want 200 with %d accepted and %d refused", status, a, len(c.want), c.refused)
			}
			if got := messages(e.Events("app")); !slices.Equal(got, c.want) {
				t.Fatalf("stored %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	e, post := serve(t, Config{})
	if status, a := post("", "application/x-ndjson", strings.NewReader("{\"message\":\"a\",\"id\":\"01890000-0000-7000-8000-000000000001\"}\nnot json\n{\"ts\":\"yesterday\"}\n")); status != 200 || a.Accepted != 1 || a.Total != 2 || a.Refused[0].Line != 2 || a.Refused[0].Reason != "not-json" || strings.Contains(a.Refused[0].Message, "frame") || a.Refused[1].Line != 3 {
		t.Fatalf("%d %+v", status, a)
	}
	if ev := e.Events("app")[0]; len(ev.Attrs) != 1 || ev.Attrs[0].Key != "id" || ev.ID.String() == ev.Attrs[0].Text() {
		t.Fatalf("a client's id is to be an attribute and not the event's: %+v", ev)
	}
	if status, a := post("?refuse=all", "application/x-ndjson", strings.NewReader("{\"message\":\"x\"}\nnot json\n")); status != 400 || a.Accepted != 0 || a.Error == nil || a.Error.Code != "refused" || !strings.Contains(a.Error.Hint, "without refuse=all") {
		t.Fatalf("refuse=all: %d %+v", status, a)
	}
	for _, query := range []string{"", "?refuse=all"} { // there are no others to take
		if status, a := post(query, "application/x-ndjson", strings.NewReader("not json\n")); status != 400 || a.Error == nil || strings.Contains(a.Error.Hint, "refuse=all") {
			t.Fatalf("%q, all refused: %d %+v", query, status, a)
		}
	}
	if status, a := post("?atomic=all", "application/x-ndjson", strings.NewReader("{\"message\":\"x\"}\n")); status != 400 || a.Accepted != 0 || a.Error == nil || a.Error.Code != "not_atomic" || !strings.Contains(a.Error.Hint, "refuse=all") {
		t.Fatalf("atomic=all: %d %+v", status, a)
	}
	if status, a := post("", "application/x-ndjson", strings.NewReader("not json\n")); status != 400 || a.Error == nil {
		t.Fatalf("nothing decodable: %d %+v", status, a)
	}
	for query, code := range map[string]string{"?ack=maybe": "bad_parameter", "?acc=none": "bad_parameter", "?extract=(": "bad_parameter", "?ack=stored": "bad_parameter"} {
		if status, a := post(query, "", strings.NewReader("x")); status != 400 || a.Error == nil || a.Error.Code != code {
			t.Errorf("%s: %d %+v, want 400 %s", query, status, a, code)
		}
	}
	if status, a := post("?ack=none", "", strings.NewReader("later")); status != 202 || a.Accepted != 1 {
		t.Fatalf("ack=none: %d %+v", status, a)
	}
	for _, contentType := range []string{"application/xml", "text/html; charset=utf-8", "multipart/form-data; boundary=x", "image/png", "application/x-protobuf"} {
		if status, a := post("", contentType, strings.NewReader("<a/>")); status != 415 || a.Error == nil || a.Error.Code != "unsupported_type" {
			t.Errorf("%s: %d %+v, want 415", contentType, status, a)
		}
	}
	for _, contentType := range []string{"application/x-www-form-urlencoded", "application/octet-stream", "application/vnd.api+json", "application/json; charset=utf-8"} {
		if status, a := post("", contentType, strings.NewReader(`{"message":"taken"}`)); status != 200 || a.Accepted != 1 {
			t.Errorf("%s: %d %+v, want 200", contentType, status, a)
		}
	}
	if status, a := post("?format=text", "application/xml", strings.NewReader("<a/>")); status != 200 || a.Accepted != 1 {
		t.Errorf("XML that is meant as text: %d %+v, want 200", status, a)
	}
	if status, a := post("", "", strings.NewReader("x"), "Content-Encoding", "br"); status != 415 || a.Error == nil {
		t.Fatalf("an encoding that is not known: %d %+v", status, a)
	}
	if status, a := post("", "", strings.NewReader("x"), "Content-Encoding", "gzip"); status != 400 || a.Error == nil || a.Error.Code != "bad_encoding" {
		t.Fatalf("a body that is not gzip: %d %+v", status, a)
	}
}

// A body of an audit event is left out where it is long, however long the line is that has it.
func TestLongAuditBody(t *testing.T) {
	t.Parallel()
	e, post := serveTopic(t, Config{}, schemas.NewTopicOf(kinds.Audit, "app"))
	long := `{"text":"` + strings.Repeat("x", 5<<20) + `"}`
	for _, line := range []string{
		`{"request_id":"r","scope":"s","type":"role","resource":"a","state":"committed","after":` + long + `}`,
		`[{"request_id":"r","scope":"s","type":"role","resource":"b","state":"committed","after":` + long + `}]`,
	} {
		if status, a := post("", "application/json", strings.NewReader(line+"\n")); status != 200 || a.Accepted != 1 {
			t.Fatalf("%.80s: %d %+v", line, status, a)
		}
	}
	events := e.Events("app")
	if len(events) != 2 {
		t.Fatalf("%d events", len(events))
	}
	for _, ev := range events {
		said := map[string]string{}
		for i := range ev.Attrs {
			said[ev.Attrs[i].Key] = ev.Attrs[i].Text()
		}
		o, ok := schemas.ParseOmitted(said["after"])
		if sum := sha256.Sum256([]byte(long)); !ok || o.Bytes != int64(len(long)) || o.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("after is %.80s", said["after"])
		}
	}
}

// The lines of a program that fails in a loop are packed more than a hundred times, and are taken.
func TestRepetitiveBody(t *testing.T) {
	t.Parallel()
	e, post := serve(t, Config{})
	line := strings.Repeat("Back-off restarting failed container worker in pod worker-7d9f; ", 10)
	const n = 2000
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		_, _ = io.WriteString(z, line+"\n")
	}
	_ = z.Close()
	if ratio := n * len(line) / b.Len(); ratio < 110 {
		t.Fatalf("it is packed %d times alone", ratio)
	}
	if status, a := post("", "text/plain", &b, "Content-Encoding", "gzip"); status != 200 || a.Accepted != n {
		t.Fatalf("%d %+v", status, a)
	}
	if got := len(messages(e.Events("app"))); got != n {
		t.Errorf("%d lines came", got)
	}
}

// bomb unpacks to 64 MiB of zeros.
func bomb(t *testing.T, pack func(io.Writer) io.WriteCloser) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	z := pack(&b)
	for range 64 {
		if _, err := z.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	e, post := serve(t, Config{})
	packers := map[string]func(io.Writer) io.WriteCloser{
		"gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"zstd": func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
	}
	for name, pack := range packers {
		var b bytes.Buffer
		z := pack(&b)
		_, _ = io.WriteString(z, "hello "+name)
		_ = z.Close()
		if status, a := post("", "text/plain", &b, "Content-Encoding", name); status != 200 || a.Accepted != 1 {
			t.Fatalf("%s: %d %+v", name, status, a)
		}
		if status, a := post("", "text/plain", bomb(t, pack), "Content-Encoding", name); status != 413 || a.Error == nil || a.Error.Code != "too_large" {
			t.Fatalf("a bomb of %s: %d %+v", name, status, a)
		}
	}
	// Chunked: of a reader whose length is not known.
	if status, a := post("", "text/plain", io.MultiReader(strings.NewReader("hello "), strings.NewReader("chunks"))); status != 200 || a.Accepted != 1 {
		t.Fatalf("chunked: %d %+v", status, a)
	}
	if got := messages(e.Events("app")); !slices.Equal(got, []string{"hello chunks", "hello gzip", "hello zstd"}) {
		t.Fatalf("stored %q", got)
	}
}

// A client that declares much and sends little holds little: the others find room.
func TestSlowBodiesLeaveSpace(t *testing.T) {
	t.Parallel()
	e := pooltest.Start(t, nil, schemas.NewTopic("app"))
	mux := http.NewServeMux()
	mux.Handle("POST /v1/topics/{topic}/events", New(Config{Pool: e.Pool}))
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	for i := range 64 {
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, _ = io.WriteString(c, "POST /v1/topics/app/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\nExpect: 100-continue\r\n\r\n")
		// The server asks for the body when it has reserved what it reads first.
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
			t.Fatalf("slow client %d: %q %v", i, line, err)
		}
	}
	resp, err := http.Post(srv.URL+"/v1/topics/app/events", "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("a good request beside 64 slow ones: %s", resp.Status)
	}
}

// The answer counts what was dated now, and names what may have been meant for the time.
func TestAnswerCountsWhatIsDatedNow(t *testing.T) {
	t.Parallel()
	_, post := serve(t, Config{})
	status, a := post("", "application/x-ndjson", strings.NewReader("{\"date\":1793872800.5}\n{\"ts\":1793872800}\n{\"created_at\":\"2026-11-05T10:00:00Z\"}\n{\"a\":1}\n"))
	if status != 200 || a.Accepted != 4 || a.NoTime != 3 || !slices.Equal(a.TimeFields, []string{"date", "created_at"}) {
		t.Errorf("%d %+v", status, a)
	}
	for query, want := range map[string]int{"?ts_field=at,date": 1, "?ts_field=at,date&require_ts=false": 2} {
		if status, a := post(query, "application/x-ndjson", strings.NewReader("{\"date\":1793872800.5}\n{\"a\":1}\n")); status != 200 || a.Accepted != want || a.NoTime != want-1 {
			t.Errorf("%s: %d %+v", query, status, a)
		}
	}
}

func TestKeyedRequest(t *testing.T) {
	t.Parallel()
	e, post := serve(t, Config{})
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "{\"ts\":\"2026-%02d-03T00:00:00Z\",\"user_id\":\"u%d\",\"n\":%d}\n", 9+i%3, i%5, i)
	}
	for try := range 5 {
		status, a := post("", "application/x-ndjson", strings.NewReader(b.String()), "Idempotency-Key", "k-1")
		if status != 200 || a.Accepted != 3000 || a.Repeated != (try > 0) {
			t.Fatalf("try %d: %d %+v", try, status, a)
		}
	}
	if n := len(e.Events("app")); n != 3000 {
		t.Fatalf("%d events are stored, want 3000", n)
	}
	if status, a := post("", "application/json", strings.NewReader(`{"message":"when?"}`), "Idempotency-Key", "k-2"); status != 400 || a.Refused[0].Reason != "no-time" {
		t.Fatalf("a keyed event without a time: %d %+v", status, a)
	}
}

func TestRecordedSyslogNG(t *testing.T) {
	t.Parallel()
	rec := inputtest.Recorded(t, "syslog-ng-http.1")
	var got []string
	err := Decode(rec.Body, intake.Options{Format: formatOf("", rec.Headers["Content-Type"], rec.Body)}, func(rec *Record) error {
		if rec.Err != nil {
			return rec.Err
		}
		for _, a := range rec.Event.Attrs {
			if a.Key == "MESSAGE" {
				got = append(got, a.Text())
			}
		}
		return nil
	})
	if err != nil || len(got) == 0 || !strings.HasPrefix(got[0], "to syslog-ng") {
		t.Fatalf("%q, %v", got, err)
	}
}

// collectd's write_http posts arrays of objects.
func TestRecordedCollectd(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"collectd-write-http.1", "collectd-write-http.2"} {
		rec := inputtest.Recorded(t, name)
		var got []string
		err := Decode(rec.Body, intake.Options{Format: formatOf("", rec.Headers["Content-Type"], rec.Body)}, func(rec *Record) error {
			if rec.Err != nil {
				return rec.Err
			}
			text := inputtest.Text(rec.Event)
			if !strings.Contains(text, "host vm") || !strings.Contains(text, "dsnames ") {
				t.Errorf("%s: %s", name, text)
			}
			got = append(got, rec.Event.Type)
			return nil
		})
		if err != nil || !slices.Equal(got, []string{"load", "load", "load"}) {
			t.Errorf("%s: types %q, %v", name, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"{\"a\":1}\n{\"b\":2}", "[{\"a\":1},{}]", "a=b c", "x,y\n1,2", "[", "{\n}", "[[[[", "\xef\xbb\xbf[]"} {
		for i := range len(intake.Formats) + 1 {
			f.Add([]byte(seed), i)
		}
	}
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, body []byte, which int) {
		format := formatJSON
		if i := uint(which) % uint(len(intake.Formats)+1); int(i) < len(intake.Formats) {
			format = intake.Formats[i]
		}
		last := 0
		_ = Decode(body, intake.Options{Format: format, Now: now}, func(rec *Record) error {
			if rec.Line < last {
				t.Fatalf("line %d after line %d", rec.Line, last)
			}
			if last = rec.Line; rec.Err == nil && !rec.Event.ID.IsZero() {
				t.Fatal("an event has a client's id")
			}
			return nil
		})
	})
}
