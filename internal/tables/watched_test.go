package tables

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/internal/tables/watchdog"
)

// pipeServer answers the requests of a DB over pipes, so that synctest's clock rules.
type pipeServer struct {
	answer func(req *http.Request, body string) (status int, text string, ok bool) // !ok: never
	refuse atomic.Bool

	dials, asking, mostAsking, questions, pings atomic.Int64
	ended                                       sync.WaitGroup
}

// open is a DB of the server.
func (s *pipeServer) open(t *testing.T) *DB {
	t.Helper()
	db, err := OpenBy("http://user:secret@engine:8123/almanac", func(context.Context, string, string) (net.Conn, error) {
		s.dials.Add(1)
		if s.refuse.Load() {
			return nil, syscall.ECONNREFUSED
		}
		client, server := net.Pipe()
		s.ended.Go(func() { s.serve(server) })
		return client, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func (s *pipeServer) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(req.Body)
		question := strings.Contains(string(body)+req.URL.RawQuery, "system.processes")
		if question {
			s.questions.Add(1)
			now := s.asking.Add(1)
			for most := s.mostAsking.Load(); now > most && !s.mostAsking.CompareAndSwap(most, now); most = s.mostAsking.Load() {
			}
		}
		if req.URL.Path == "/ping" {
			s.pings.Add(1)
		}
		status, text, ok := s.answer(req, string(body))
		if !ok {
			_, _ = r.ReadByte() // until the client gives up
		}
		if question {
			s.asking.Add(-1)
		}
		if !ok {
			return
		}
		_, err = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), len(text), text)
		if err != nil {
			return
		}
	}
}

// post sends a small statement as an insert is sent.
func post(ctx context.Context, db *DB, id string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, db.base+"/?query_id="+id, strings.NewReader("INSERT"))
	if err != nil {
		return err
	}
	body, err := db.do(req)
	if err != nil {
		return err
	}
	return body.Close()
}

// A slow engine's silent requests were each asked about twice a
// second over new connections, which kept it from ever answering.
func TestSilentEngineGetsOneQuestionAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &pipeServer{answer: func(*http.Request, string) (int, string, bool) { return 0, "", false }}
		db := s.open(t)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range maxConns {
			wg.Go(func() {
				if err := post(ctx, db, fmt.Sprint("q", i)); !errors.Is(err, context.Canceled) {
					t.Errorf("a silent request ended with %v, want to wait for its caller", err)
				}
			})
		}
		const long = 16 * time.Minute
		<-time.After(long)
		cancel()
		wg.Wait()
		if most := s.mostAsking.Load(); most != 1 {
			t.Errorf("%d questions at once, want 1", most)
		}
		// Two a minute, and what comes before the pauses are long.
		if n, limit := s.questions.Load(), int64(2*long/time.Minute)+8; n == 0 || n > limit {
			t.Errorf("%d questions in %s, want 1 to %d", n, long, limit)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		s.ended.Wait()
	})
}

// One question covers all silent requests: those that the server runs wait, those that
// it does not know end.
func TestOneQuestionForAllSilentRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &pipeServer{answer: func(_ *http.Request, body string) (int, string, bool) {
			if !strings.Contains(body, "system.processes") {
				return 0, "", false
			}
			var runs string
			for i := range 8 {
				if id := fmt.Sprintf("runs%d", i); strings.Contains(body, "'"+id+"'") {
					runs += id + "\n"
				}
			}
			return http.StatusOK, runs, true
		}}
		db := s.open(t)
		ctx, cancel := context.WithCancel(t.Context())
		var known, lost sync.WaitGroup
		for i := range 8 {
			known.Go(func() {
				if err := post(ctx, db, fmt.Sprint("runs", i)); !errors.Is(err, context.Canceled) {
					t.Errorf("a request that the server runs ended with %v", err)
				}
			})
			lost.Go(func() {
				if err := post(ctx, db, fmt.Sprint("lost", i)); !errors.Is(err, ErrVanished) || Classify(err) != Moved {
					t.Errorf("a request that the server does not know ended with %v, want ErrVanished", err)
				}
			})
		}
		lost.Wait()
		if n := s.questions.Load(); n != 2 {
			t.Errorf("%d questions for eight lost requests, want 2", n)
		}
		cancel()
		known.Wait()
		_ = db.Close()
		s.ended.Wait()
	})
}

// What only reads is sent once more where the server does not know it, once, and under another name. What may have changed something is
// not, and neither is what was given a name.
func TestReadsAreSentOnceMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query, body string
		sent        int64
	}{
		"a read":                     {"", "\n SELECT 1", 2},
		"what may be either":         {"", "with 1 AS x SELECT x", 1},
		"a read in the address":      {"query=SELECT+1", "data", 2},
		"a read that is named":       {"query_id=mine", "SELECT 1", 1},
		"a change":                   {"", "ALTER TABLE t DELETE WHERE 1", 1},
		"a change in the address":    {"query=OPTIMIZE+TABLE+t", "SELECT 1", 1},
		"a word that begins like it": {"", "SELECTED", 1},
		"nothing":                    {"", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var sent atomic.Int64
				s := &pipeServer{answer: func(req *http.Request, body string) (int, string, bool) {
					if strings.Contains(body, "system.processes") {
						return http.StatusOK, "", true
					}
					if body != c.body {
						t.Errorf("the body was %q", body)
					}
					sent.Add(1)
					return 0, "", false
				}}
				db := s.open(t)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, db.base+"/?"+c.query, strings.NewReader(c.body))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := db.do(req); !errors.Is(err, ErrVanished) {
					t.Errorf("ended with %v, want ErrVanished", err)
				}
				if n := sent.Load(); n != c.sent {
					t.Errorf("sent %d times, want %d", n, c.sent)
				}
				_ = db.Close()
				s.ended.Wait()
			})
		})
	}
}

// A server that reads a form with many events is not asked about it meanwhile: it does not know the statement yet.
func TestFormsAreRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &pipeServer{answer: func(_ *http.Request, body string) (int, string, bool) {
			if !strings.Contains(body, "system.processes") {
				<-time.After(4 * time.Second)
			}
			return http.StatusOK, "", true
		}}
		db := s.open(t)
		for size, want := range map[int]error{1 << 10: ErrVanished, 16 << 20: nil} {
			err := db.Lines(t.Context(), &Select{SQL: "SELECT 1", ID: fmt.Sprint("of", size), Fresh: [][]byte{make([]byte, size)}, FreshStructure: "x String"}, func(string) error { return nil })
			if !errors.Is(err, want) {
				t.Errorf("a form of %d bytes ended with %v, want %v", size, err, want)
			}
		}
		_ = db.Close()
		s.ended.Wait()
	})
}

// An outage is found by one prober, reported once, waited for by
// everybody, and its end is reported once.
func TestOutageIsOneReportAndOneProber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &pipeServer{answer: func(req *http.Request, _ string) (int, string, bool) { return http.StatusOK, "", true }}
		db := s.open(t)
		var down, up []time.Duration
		began := time.Now()
		db.SetHooks(Hooks{
			Unreachable: func(error) { down = append(down, time.Since(began)) },
			Reachable:   func(away time.Duration) { up = append(up, away) },
		})
		if err := post(t.Context(), db, "first"); err != nil {
			t.Fatal(err)
		}
		s.refuse.Store(true)
		db.closeIdle()
		dialled := s.dials.Load()
		const away = 10 * time.Minute
		time.AfterFunc(away, func() { s.refuse.Store(false) })
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				for {
					err := post(t.Context(), db, fmt.Sprint("q", i))
					if err == nil {
						return
					}
					if c := Classify(err); c != Unreachable {
						t.Errorf("class %d of %v, want Unreachable", c, err)
						return
					}
					if _, err := db.Wait(t.Context()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if len(down) != 1 || len(up) != 1 {
			t.Errorf("reported down %v, up %v; want one each", down, up)
		}
		if late := time.Since(began) - away; late > watchdog.MaxProbePause {
			t.Errorf("back %s after the server, want at most %s", late, watchdog.MaxProbePause)
		}
		// A hundred first attempts, a probe every second or two, and the last attempts.
		if n, limit := s.dials.Load()-dialled, int64(100+away/(watchdog.MaxProbePause/2)+8+100); n > limit {
			t.Errorf("%d connections during the outage, want at most %d", n, limit)
		}
		_ = db.Close()
		s.ended.Wait()
	})
}

// A request that fails by itself is not an outage: the server answers the probe.
func TestOneLostConnectionIsNoOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &pipeServer{answer: func(req *http.Request, body string) (int, string, bool) {
			if strings.Contains(body, "system.processes") { // neither proves anything
				return http.StatusServiceUnavailable, "", true
			}
			return http.StatusOK, "", req.URL.Query().Get("query_id") != "slow"
		}}
		db := s.open(t)
		db.SetHooks(Hooks{Unreachable: func(err error) { t.Errorf("reported an outage: %v", err) }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := post(ctx, db, "slow"); Classify(err) != Unreachable || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want ErrUnreachable after a minute", err)
		}
		if away, err := db.Wait(t.Context()); away || err != nil {
			t.Errorf("away %v, %v", away, err)
		}
		if err := post(t.Context(), db, "next"); err != nil {
			t.Error(err)
		}
		if n := s.pings.Load(); n != 1 {
			t.Errorf("%d probes, want 1", n)
		}
		_ = db.Close()
		s.ended.Wait()
	})
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want Class
	}{
		"nothing":     {nil, Fine},
		"unreachable": {fmt.Errorf("head: %w: refused", ErrUnreachable), Unreachable},
		"both":        {errors.Join(&Error{Code: codeTooManyParts}, ErrUnreachable), Unreachable},
		"busy":        {&Error{Code: codeTooManyParts}, Overloaded},
		"queries":     {&Error{Code: codeTooManyQueries}, Overloaded},
		"no space":    {&Error{Code: codeNotEnoughSpace}, Overloaded},
		"moved":       {&Error{Code: codeThrowIf, Text: TextHeadMoved}, Moved},
		"vanished":    {fmt.Errorf("%w: silent", ErrVanished), Moved},
		"no table":    {&Error{Code: codeUnknownTable}, Missing},
		"syntax":      {&Error{Code: 62}, Refused},
		"cancelled":   {context.Canceled, Foreign},
		"other":       {errors.New("nats: timeout"), Foreign},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Classify(c.err); got != c.want {
				t.Errorf("class %d, want %d", got, c.want)
			}
		})
	}
}

// A server that takes longer than one question's time for each answer is still believed:
// a question without an answer does not take back the answer before it.
func TestSlowAnswersEndLostRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &pipeServer{answer: func(_ *http.Request, body string) (int, string, bool) {
			if !strings.Contains(body, "system.processes") {
				return 0, "", false
			}
			<-time.After(watchdog.AskTime * 5 / 2)
			return http.StatusOK, "", true
		}}
		db := s.open(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := post(ctx, db, "lost"); !errors.Is(err, ErrVanished) {
			t.Errorf("%v, want ErrVanished", err)
		}
		_ = db.Close()
		s.ended.Wait()
	})
}
