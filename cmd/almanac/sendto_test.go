package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	linesinput "github.com/almanac-events/almanac/internal/gateway/lines"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas"
)

// sendTo runs `send --to` against a real gateway input, whose answers fail as told: 503
// before anything is taken, and a connection that breaks after all was stored.
func sendTo(t *testing.T, e *pooltest.Env, text string, args ...string) (summary, int) {
	t.Helper()
	in := linesinput.New(linesinput.Config{Pool: e.Pool})
	mux := http.NewServeMux()
	mux.Handle("POST /v1/topics/{topic}/events", in)
	var n atomic.Int64
	srv := httptest.NewServer(request.WithID(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) % 4 {
		case 1:
			request.Fail(w, r, request.Refuse(http.StatusServiceUnavailable, "stalled", "not now", ""))
		case 2:
			if r.Header.Get("Idempotency-Key") != "" {
				mux.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}
			mux.ServeHTTP(w, r)
		default:
			mux.ServeHTTP(w, r)
		}
	})))
	defer srv.Close()
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(text), stdout: &out, stderr: &errs}
	code := a.execute(t.Context(), append([]string{"send", "app", "--to", srv.URL, "-o", "json", "--data", t.TempDir()}, args...))
	var sum summary
	if err := json.Unmarshal(out.Bytes(), &sum); err != nil {
		t.Fatalf("exit %d: %s%s", code, out.String(), errs.String())
	}
	return sum, code
}

// Lines with times are stored once each, although answers are lost; refused lines are
// named by their numbers in the file.
func TestSendTo(t *testing.T) {
	t.Parallel()
	e := pooltest.Start(t, nil, schemas.NewTopic("app"))
	const n = 5000
	var text strings.Builder
	for i := range n {
		if i == 4321 {
			text.WriteString("no json\n")
			continue
		}
		fmt.Fprintf(&text, `{"ts":"2026-11-22T10:00:00.%06dZ","msg":"m-%d"}`+"\n", i, i)
	}
	sum, code := sendTo(t, e, text.String(), "--format", "ndjson")
	if code != exitPartial || sum.Accepted != n-1 || sum.Refused != 1 || sum.Refusals[0].Line != 4322 || sum.ByReason["not-json"] != 1 || sum.Unknown != 0 {
		t.Errorf("exit %d: %+v", code, sum)
	}
	seen := map[string]int{}
	for _, ev := range e.Events("app") {
		seen[ev.Message]++
	}
	for i := range n {
		if want := 1; i != 4321 && seen[fmt.Sprintf("m-%d", i)] != want {
			t.Fatalf("m-%d is stored %d times", i, seen[fmt.Sprintf("m-%d", i)])
		}
	}
}

// Text without times, CSV over several requests, and records of several lines arrive.
func TestSendToFormats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		args []string
		want uint64
		last string
	}{
		"text":      {strings.Repeat("a line\n", 4500), nil, 4500, "a line"},
		"csv":       {"ts,message\n" + strings.Repeat("2026-11-22T10:00:00Z,\"two\nlines\"\n", 2500), []string{"-f", "csv"}, 2500, "two\nlines"},
		"json":      {`[{"msg":"a"},{"msg":"b"}]`, []string{"-f", "json"}, 2, "b"},
		"multiline": {strings.Repeat("2026-11-22T10:00:00Z begins\n\tgoes on\n", 2500), []string{"--multiline", `^\d`}, 2500, "2026-11-22T10:00:00Z begins\n\tgoes on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := pooltest.Start(t, nil, schemas.NewTopic("app"))
			sum, code := sendTo(t, e, c.text, c.args...)
			events := e.Events("app")
			if code != exitOK || sum.Accepted != c.want || uint64(len(events)) != c.want || events[len(events)-1].Message != c.last {
				t.Errorf("exit %d, %d events: %+v", code, len(events), sum)
			}
		})
	}
}

func TestSendToRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--to", "nowhere"}, {"--to", "nats://127.0.0.1:4222"}, {"--to", "http://127.0.0.1:1", "--map", "type=x"}, {"--to", "http://127.0.0.1:1", "--report", "x"},
	} {
		if r := inProcess(t, append([]string{"send", "app", "--data", t.TempDir()}, args...)...); r.code != exitUsage || !strings.Contains(r.err, "--") {
			t.Errorf("%v: exit %d: %s", args, r.code, r.err)
		}
	}
}
