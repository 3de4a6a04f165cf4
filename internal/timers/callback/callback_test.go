package callback

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// nineDigits is a time as callbacks have it.
const nineDigits = "2026-11-20T12:00:00.000000000Z"

var loopback = []Range{{Addresses: netip.MustParsePrefix("127.0.0.0/8"), Low: 1, High: 65535}}

func claimed() *timer.Record {
	key := schemas.NewTimerKey("timers", "mails", "user-1", 16, 4)
	r, _, _ := timer.Create(key, nil, timer.Draft{Spec: timer.Spec{URL: "http://x.example/"}, Due: time.Now().UnixNano(), Life: schemas.NewID(1)}, 1)
	r.Seq = 1
	c := timer.Claim(&r, "me", "c", time.Now().UnixNano())
	return &c
}

func server(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestCallSaysWhoAndWhat(t *testing.T) {
	secrets, err := ParseSecrets("mails@timers=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw,whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA; other@*=whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	r := claimed()
	url := server(t, func(w http.ResponseWriter, req *http.Request) {
		data, _ := io.ReadAll(req.Body)
		var got map[string]any
		if err := json.Unmarshal(data, &got); err != nil {
			t.Error(err)
		}
		if got["group"] != "mails" || got["id"] != "user-1" || got["attempt"] != 1.0 || got["revision"] != 1.0 || got["life"] != r.Life.String() ||
			got["payload"].(map[string]any)["n"] != 1.0 || len(got["due"].(string)) != len(nineDigits) || len(got["fired_at"].(string)) != len(nineDigits) {
			t.Errorf("body %s", data)
		}
		if k := req.Header.Get("Idempotency-Key"); k != r.Life.String()+"-1-1" {
			t.Errorf("Idempotency-Key %q", k)
		}
		if req.Method != http.MethodPost || req.Header.Get("webhook-id") != r.Life.String()+"-1" || req.Header.Get("webhook-timestamp") == "" ||
			len(strings.Fields(req.Header.Get("webhook-signature"))) != 2 {
			t.Errorf("%s %v", req.Method, req.Header)
		}
		_, _ = io.WriteString(w, `{"ok":true}`)
	})
	c := New(Config{AllowCIDRs: loopback, Secrets: secrets})
	defer c.Close()
	v, call, err := c.Call(t.Context(), &timer.Group{SecretRef: "mails"}, r, &timer.Spec{URL: url, Payload: json.RawMessage(`{"n": 1}`)})
	if err != nil || v.Kind != timer.Success || call.Status != 200 {
		t.Errorf("%+v %+v %v", v, call, err)
	}
	if v, _, _ := c.Call(t.Context(), &timer.Group{SecretRef: "absent"}, r, &timer.Spec{URL: url}); v.Error != timer.ErrSecret {
		t.Errorf("with a secret that is not there: %+v", v)
	}
}

// TestBarePayload holds that a payload which is to be the whole body is, byte by byte, under the same headers.
func TestBarePayload(t *testing.T) {
	secrets, err := ParseSecrets("mails@timers=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	r, payload := claimed(), json.RawMessage(`[{"a":"<&>"}]`)
	asked := false
	url := server(t, func(_ http.ResponseWriter, req *http.Request) {
		asked = true
		if data, _ := io.ReadAll(req.Body); string(data) != string(payload) {
			t.Errorf("body %s", data)
		}
		if req.Header.Get("Content-Type") != "application/json" || req.Header.Get("Idempotency-Key") != r.Life.String()+"-1-1" || req.Header.Get("webhook-signature") == "" {
			t.Errorf("%v", req.Header)
		}
	})
	c := New(Config{AllowCIDRs: loopback, Secrets: secrets})
	defer c.Close()
	v, _, err := c.Call(t.Context(), &timer.Group{SecretRef: "mails"}, r, &timer.Spec{URL: url, Payload: payload, Bare: true})
	if err != nil || v.Kind != timer.Success || !asked {
		t.Errorf("%+v %v", v, err)
	}
	if err := (&timer.Spec{URL: url, Bare: true}).Validate(nil); err == nil {
		t.Error("a body of nothing was taken")
	}
}

// TestSignatureVector is the example of the Standard Webhooks specification.
func TestSignatureVector(t *testing.T) {
	s, err := ParseSecrets("k@*=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Sign("timers", "k", "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	for _, bad := range []string{"k", "k@*", "k@*=whsec_!!!", "k@*=whsec_AAAA", "=whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "@*=whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		if _, err := ParseSecrets(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestEvilAnswers(t *testing.T) {
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	slowly := func(w http.ResponseWriter, every time.Duration) {
		w.WriteHeader(http.StatusOK)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			if _, err := w.Write([]byte(" ")); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-ended:
				return
			case <-tick.C:
			}
		}
	}
	for _, c := range []struct {
		name, mode string
		do         http.HandlerFunc
		kind       timer.Kind
		err        string
		status     int
	}{
		{"500", "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, timer.TryAgain, timer.ErrStatus, 500},
		{"404", "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, timer.TryAgain, timer.ErrStatus, 404},
		{"text", timer.AnswerJSON, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "thanks") }, timer.TryAgain, timer.ErrNotJSON, 200},
		{"redirect", "", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
		}, timer.TryAgain, timer.ErrRedirect, 302},
		{"10 MB", timer.AnswerJSON, func(w http.ResponseWriter, _ *http.Request) {
			block := make([]byte, 64<<10)
			for range 160 {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, timer.TryAgain, timer.ErrAnswerSize, 200},
		{"10 MB by status", timer.AnswerStatus, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 10<<20))
		}, timer.Success, "", 200},
		{"a byte at a time", timer.AnswerJSON, func(w http.ResponseWriter, _ *http.Request) { slowly(w, 20*time.Millisecond) }, timer.TryAgain, timer.ErrTimeout, 200},
		{"nothing", "", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // until then the server does not see the client hang up
			select {
			case <-ended:
			case <-r.Context().Done():
			}
		}, timer.TryAgain, timer.ErrTimeout, 0},
		{"hangs up", "", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_ = conn.Close()
		}, timer.TryAgain, timer.ErrUnreachable, 0},
		{"cut", timer.AnswerJSON, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"ok":`)
		}, timer.TryAgain, timer.ErrAnswerCut, 200},
		{"large headers", "", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 64<<10))
		}, timer.TryAgain, timer.ErrUnreachable, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			caller := New(Config{AllowCIDRs: loopback})
			defer caller.Close()
			s := &timer.Spec{URL: server(t, c.do), Timeout: 500 * time.Millisecond}
			if c.err != timer.ErrTimeout {
				s.Timeout = timer.MaxTimeout // what is not about time is not evaluated by it
			}
			v, call, err := caller.Call(t.Context(), &timer.Group{Answer: c.mode}, claimed(), s)
			if err != nil || v.Kind != c.kind || call.Error != c.err || call.Status != c.status {
				t.Errorf("kind %d, %+v, %v; want kind %d, %q, status %d", v.Kind, call, err, c.kind, c.err, c.status)
			}
		})
	}
}

func TestCallThatEndsWithItsDispatcher(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := server(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	})
	c := New(Config{AllowCIDRs: loopback})
	defer c.Close()
	if _, _, err := c.Call(ctx, &timer.Group{}, claimed(), &timer.Spec{URL: url}); !errors.Is(err, ErrAborted) {
		t.Errorf("%v, want ErrAborted", err)
	}
}

// TestConnectionsFollowTheBound has more calls at once than a caller may have connections to one host.
func TestConnectionsFollowTheBound(t *testing.T) {
	const calls = 6
	for name, perHost := range map[string]int{"bounded": 2, "as many as calls": calls, "not bounded": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := calls
			if perHost > 0 {
				want = perHost
			}
			var now, most atomic.Int64
			var once sync.Once
			full := make(chan struct{})
			url := server(t, func(w http.ResponseWriter, _ *http.Request) {
				n := now.Add(1)
				defer now.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				if n == int64(want) {
					once.Do(func() { close(full) })
				}
				<-full // so many are here at once, or it waits for its time
				_, _ = io.WriteString(w, `{"ok":true}`)
			})
			c := New(Config{AllowCIDRs: loopback, PerHost: perHost})
			defer c.Close()
			var all sync.WaitGroup
			for range calls {
				all.Go(func() {
					if v, call, err := c.Call(t.Context(), &timer.Group{}, claimed(), &timer.Spec{URL: url, Timeout: timer.MaxTimeout}); err != nil || v.Kind != timer.Success {
						t.Errorf("%+v %+v %v", v, call, err)
					}
				})
			}
			all.Wait()
			if got := most.Load(); got != int64(want) {
				t.Errorf("%d connections at once, expected %d", got, want)
			}
		})
	}
}

// A secret with topics signs for groups of those alone: who may declare groups elsewhere does not have its signature.
func TestSecretsOfTopics(t *testing.T) {
	t.Parallel()
	const key = "=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	s, err := ParseSecrets("any@*" + key + ";pager@alert_calls, shop" + key)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		topic, name string
		signs       bool
	}{
		{"timers", "any", true}, {"alert_calls", "pager", true}, {"shop", "pager", true}, {"timers", "pager", false}, {"", "pager", false}, {"shop", "none", false},
	} {
		got, err := s.Sign(c.topic, c.name, "msg_a", time.Unix(1614265330, 0), []byte("{}"))
		if (err == nil) != c.signs || (got != "") != c.signs || err != nil && !errors.Is(err, ErrSecret) {
			t.Errorf("%s in %q: %q, %v", c.name, c.topic, got, err)
		}
	}
	for _, bad := range []string{"a@" + key, "a@shop," + key, "a@b c" + key, "@shop" + key, "a@*" + key + ";a@shop" + key, "a@*,shop" + key, "a@shop,*" + key, "a@**" + key, "a" + key + ";a@shop" + key, "a" + key} {
		if _, err := ParseSecrets(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, unnamed := range []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw==", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw=", "mails@whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw=", "whsec_mfkq9r8g@shop" + key} {
		if _, err := ParseSecrets(unnamed); err == nil || strings.Contains(strings.ToLower(err.Error()), "mfkq9r8g") {
			t.Errorf("a secret without a name: %v", err)
		}
	}
	_, err = ParseSecrets("one" + key + ";two@shop" + key + ";three" + key + ";one" + key)
	if err == nil {
		t.Fatal("secrets without topics are taken")
	}
	for _, says := range []string{"one, three name no topics", "one@TOPIC,TOPIC=whsec_", "one@*=whsec_"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("no %q in %v", says, err)
		}
	}
	if strings.Contains(err.Error(), "MfKQ9r8G") {
		t.Errorf("a key is in %v", err)
	}
}
