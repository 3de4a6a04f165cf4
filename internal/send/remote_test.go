package send

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	linesinput "github.com/almanac-events/almanac/internal/gateway/lines"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/schemas"
)

// faulty is a real gateway input whose answers fail: 503 before anything is taken, and a
// connection that breaks after all was stored.
func faulty(t *testing.T, e *pooltest.Env) *url.URL {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("POST /v1/topics/{topic}/events", linesinput.New(linesinput.Config{Pool: e.Pool}))
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
	t.Cleanup(srv.Close)
	at, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Lines with times are stored once each, although answers are lost; refused lines are
// named by their numbers in the file.
func TestRemoteStoresOnce(t *testing.T) {
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
	stats, err := NewStats("", error.Error)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRemote(RemoteConfig{
		URL: faulty(t, e), Topic: "app", Format: intake.FormatNDJSON, Params: url.Values{"format": {intake.FormatNDJSON}},
		Stats: stats, Note: t.Logf,
	})
	if err := r.Run(t.Context(), []Input{{Name: "-", Reader: strings.NewReader(text.String())}}); err != nil {
		t.Fatal(err)
	}
	sum := stats.Summary()
	if sum.Accepted != n-1 || sum.Refused != 1 || sum.Refusals[0].Line != 4322 || sum.ByReason["not-json"] != 1 || sum.Unknown != 0 {
		t.Errorf("%+v", sum)
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

// A gateway that asks for a token: the refusal says how send is given one, with one and without, and nothing is sent again.
func TestRemoteSaysWhereTheTokenGoes(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "alm_aaaaaa_AAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		t.Run("token "+token, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				request.Fail(w, r, access.ErrUnauthenticated)
			}))
			t.Cleanup(srv.Close)
			at, err := url.Parse(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			stats, err := NewStats("", error.Error)
			if err != nil {
				t.Fatal(err)
			}
			r := NewRemote(RemoteConfig{URL: at, Topic: "app", Token: token, Format: intake.FormatText, Params: url.Values{"format": {intake.FormatText}}, Stats: stats, Note: t.Logf})
			err = r.Run(t.Context(), []Input{{Name: "-", Reader: strings.NewReader("a\n")}})
			if err == nil || !strings.Contains(err.Error(), "ALMANAC_TOKEN_FILE") || token != "" && strings.Contains(err.Error(), token) || asked.Load() != 1 {
				t.Errorf("%v, asked %d times", err, asked.Load())
			}
		})
	}
}

// An answer that leads elsewhere ends the send, and its token goes nowhere else.
func TestRemoteFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		var asked atomic.Int64
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
		t.Cleanup(elsewhere.Close)
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, code)
		}))
		t.Cleanup(gateway.Close)
		to, err := url.Parse(gateway.URL)
		if err != nil {
			t.Fatal(err)
		}
		secret, _ := access.NewSecret()
		r := NewRemote(RemoteConfig{URL: to, Topic: "app", Token: secret, Params: url.Values{}, Stats: &Stats{}})
		err = r.request(t.Context(), []byte("{}\n"), 0)
		if !errors.Is(err, errRedirect) || !strings.Contains(err.Error(), elsewhere.URL) || asked.Load() != 0 {
			t.Errorf("%d: %v, and the other was asked %d times", code, err, asked.Load())
		}
	}
}
