package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/verify"
)

// A GET begins no proof. All who POST within a minute share one.
func TestProofsAreMadeByPost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runs, fails := 0, false
		a := New(Config{Anyone: true, Verify: func(context.Context, string, func(int, int)) (*verify.Report, error) {
			runs++
			<-time.After(6 * time.Second)
			if fails {
				return nil, errors.New("ClickHouse is away")
			}
			return &verify.Report{}, nil
		}})
		mux := http.NewServeMux()
		a.addProofs(routes{mux, a})
		ask := func(method string) (int, string) {
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/v1/verify", nil))
			return w.Code, w.Body.String()
		}
		expect := func(when, method string, status, ran int, has string) {
			t.Helper()
			if got, text := ask(method); got != status || runs != ran || !strings.Contains(text, has) {
				t.Errorf("%s, %s: %d after %d runs, want %d after %d: %s", when, method, got, runs, status, ran, text)
			}
		}
		for range 100 {
			expect("before any", http.MethodGet, 404, 0, "no_proof")
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { expect("together", http.MethodPost, 200, 1, "took_seconds") })
		}
		synctest.Wait()
		expect("while the first is under way", http.MethodGet, 404, 1, "under way")
		all.Wait()
		expect("after the first", http.MethodGet, 200, 1, `"took_seconds":6`)
		expect("within a minute", http.MethodPost, 200, 1, `"took_seconds":6`)
		<-time.After(proofAge)
		for range 100 {
			expect("after a minute", http.MethodGet, 200, 1, "took_seconds")
		}
		expect("after a minute", http.MethodPost, 200, 2, "took_seconds")
		<-time.After(proofAge)
		fails = true
		expect("ClickHouse away", http.MethodPost, 503, 3, "ClickHouse is away")
		expect("ClickHouse away", http.MethodGet, 200, 3, "took_seconds")
		fails = false
		expect("at once after a failure", http.MethodPost, 200, 4, "took_seconds")
		synctest.Wait()
	})
}

// A proof of one more topic takes the place of the oldest that has ended, and of none under way.
func TestProofsKept(t *testing.T) {
	t.Parallel()
	s := proofs{known: map[string]*proven{}}
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	var runs []*proof
	for i := range maxProofs {
		run, begin := s.runOf("t"+strconv.Itoa(i), now.Add(time.Duration(i)*time.Second))
		if !begin {
			t.Fatal("a first run is not begun")
		}
		runs = append(runs, run)
	}
	if run, _ := s.runOf("more", now); run != nil {
		t.Error("all are under way, and one more is begun")
	}
	close(runs[7].done)
	close(runs[9].done)
	if _, begin := s.runOf("more", now); !begin {
		t.Error("two have ended, and none gave room")
	}
	if last, _ := s.lastOf("t7"); last != nil || s.known["t9"] == nil || len(s.known) != maxProofs {
		t.Error("it is not the oldest that was forgotten")
	}
}
