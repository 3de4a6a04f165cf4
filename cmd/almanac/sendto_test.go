package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	linesinput "github.com/almanac-events/almanac/internal/gateway/lines"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/send"
	"github.com/almanac-events/almanac/schemas"
)

// sendTo runs `send --to` against a real gateway input.
func sendTo(t *testing.T, e *pooltest.Env, text string, args ...string) (send.Summary, int) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("POST /v1/topics/{topic}/events", linesinput.New(linesinput.Config{Pool: e.Pool}))
	srv := httptest.NewServer(request.WithID(mux))
	defer srv.Close()
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(text), stdout: &out, stderr: &errs}
	code := a.execute(t.Context(), append([]string{"send", "app", "--to", srv.URL, "-o", "json", "--data", t.TempDir()}, args...))
	var sum send.Summary
	if err := json.Unmarshal(out.Bytes(), &sum); err != nil {
		t.Fatalf("exit %d: %s%s", code, out.String(), errs.String())
	}
	return sum, code
}

// Each format arrives by the flags that name it, and the exit code tells refused lines: text without times, CSV over several requests, and records of several lines arrive.
func TestSendToFormats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		args []string
		want uint64
		last string
		bad  uint64
	}{
		"text":      {strings.Repeat("a line\n", 4500), nil, 4500, "a line", 0},
		"csv":       {"ts,message\n" + strings.Repeat("2026-11-22T10:00:00Z,\"two\nlines\"\n", 2500), []string{"-f", "csv"}, 2500, "two\nlines", 0},
		"json":      {`[{"msg":"a"},{"msg":"b"}]`, []string{"-f", "json"}, 2, "b", 0},
		"ndjson":    {`{"msg":"a"}` + "\nno json\n", []string{"-f", "ndjson"}, 1, "a", 1},
		"multiline": {strings.Repeat("2026-11-22T10:00:00Z begins\n\tgoes on\n", 2500), []string{"--multiline", `^\d`}, 2500, "2026-11-22T10:00:00Z begins\n\tgoes on", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := pooltest.Start(t, nil, schemas.NewTopic("app"))
			sum, code := sendTo(t, e, c.text, c.args...)
			events := e.Events("app")
			want := exitOK
			if c.bad > 0 {
				want = exitPartial
			}
			if code != want || sum.Refused != c.bad || sum.Accepted != c.want || uint64(len(events)) != c.want || events[len(events)-1].Message != c.last {
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

// A gateway whose CA is a file is trusted; without it send ends at once, and says what to give.
func TestSendToCA(t *testing.T) {
	t.Parallel()
	e := pooltest.Start(t, nil, schemas.NewTopic("app"))
	mux := http.NewServeMux()
	mux.Handle("POST /v1/topics/{topic}/events", linesinput.New(linesinput.Config{Pool: e.Pool}))
	srv := httptest.NewUnstartedServer(request.WithID(mux))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	send := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		a := &app{stdin: strings.NewReader("hello\n"), stdout: &out, stderr: &errs}
		return a.execute(t.Context(), append([]string{"send", "app", "--to", srv.URL, "--data", t.TempDir()}, args...)), errs.String()
	}
	if code, text := send(); code != exitFailed || !strings.Contains(text, "--ca-file") {
		t.Errorf("without the CA: exit %d: %s", code, text)
	}
	if code, text := send("--ca-file", ca); code != exitOK || len(e.Events("app")) != 1 {
		t.Errorf("with the CA: exit %d: %s", code, text)
	}
}
