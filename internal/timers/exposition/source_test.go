package exposition

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestPaced reads a source that takes 2 s: one read at a time, a result for all that ask, and none again for
// twenty times as long, or for the plain pause where it failed. While a read is under way the older result is served.
func TestPaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		why := errors.New("no NATS")
		const apart = 10 * time.Second
		source := Paced("front", func(context.Context) (Group, error) {
			n := reads.Add(1)
			<-time.After(2 * time.Second)
			if n != 2 {
				return nil, why
			}
			return Group{nil}, nil
		}, apart)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := source.Read(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who waits 1 s: %v", err)
		}
		for _, step := range []struct {
			name  string
			after time.Duration
			reads int32
			err   error
		}{
			{"the first read failed", 0, 1, why},
			{"before the pause ends", apart - time.Second, 1, why},
			{"the second is under way", 2 * time.Second, 2, why},
			{"the second was good", 3 * time.Second, 2, nil},
			{"before twenty times as long", pause*2*time.Second - 6*time.Second, 2, nil},
			{"the third is under way", 6 * time.Second, 3, nil},
			{"the third failed", 3 * time.Second, 3, why},
		} {
			<-time.After(step.after)
			for range 2 {
				got, err := source.Read(t.Context())
				if !errors.Is(err, step.err) || (err == nil) != (len(got) == 1) || reads.Load() != step.reads {
					t.Errorf("%s: %d families, %v after %d reads", step.name, len(got), err, reads.Load())
				}
				if strings.Contains(step.name, "under way") {
					break // another would wait until it ends
				}
			}
		}
	})
}

// TestHandler holds that a source that fails is named beside what the others say, and that the answer is 503 where all do.
func TestHandler(t *testing.T) {
	t.Parallel()
	why := errors.New("no NATS")
	good := func(name string) Source {
		return Source{name, func(context.Context) (Group, error) {
			one := gauge("almanac_"+name, "A number.")
			one.add(1, nil)
			return groups(one), nil
		}}
	}
	bad := func(name string) Source {
		return Source{name, func(context.Context) (Group, error) { return nil, why }}
	}
	for name, c := range map[string]struct {
		sources []Source
		code    int
		says    []string
	}{
		"all are there": {[]Source{good("a"), good("b")}, http.StatusOK, []string{"almanac_a 1\n", "almanac_b 1\n", `failed{source="a"} 0`, `failed{source="b"} 0`}},
		"one fails":     {[]Source{bad("a"), good("b")}, http.StatusOK, []string{"almanac_b 1\n", `failed{source="a"} 1`, `failed{source="b"} 0`}},
		"all fail":      {[]Source{bad("a"), bad("b")}, http.StatusServiceUnavailable, []string{why.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := Handler(func(w http.ResponseWriter, _ *http.Request, err error) {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			}, c.sources...)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
			if w.Code != c.code || w.Code == http.StatusOK && w.Header().Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
				t.Errorf("%d %q, expected %d", w.Code, w.Header(), c.code)
			}
			for _, want := range c.says {
				if !strings.Contains(w.Body.String(), want) {
					t.Errorf("%q is not in:\n%s", want, w.Body)
				}
			}
		})
	}
}
