package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	querytimers "github.com/almanac-events/almanac/internal/query/timers"
	"github.com/almanac-events/almanac/internal/timers/callback"
	"github.com/almanac-events/almanac/internal/timers/dispatch"
	"github.com/almanac-events/almanac/internal/timers/timerstest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// timersEnv is an env with a group of timers, and a server that is called.
type timersEnv struct {
	*env
	*timers.Timers
	url string

	mu     sync.Mutex
	calls  map[string][]timerCall // by timer id
	status func(c timerCall) int  // of the answer; nil: 200
}

// timerCall is a callback as the server got it.
type timerCall struct {
	ID      string
	Due     time.Time
	Payload json.RawMessage
	came    time.Time
	key     string
}

// timers makes a group "g" and a server that answers ok.
func (e *env) timers() *timersEnv {
	e.t.Helper()
	te := &timersEnv{env: e, calls: map[string][]timerCall{}}
	_, _, err := timers.ApplyGroup(e.t.Context(), e.reg, schemas.DefaultTimerTopic, "g", func(g *timer.Group) error {
		g.Slots = 16
		return nil
	})
	if err != nil {
		e.t.Fatal(err)
	}
	if te.Timers, err = timers.Open(e.t.Context(), e.connect(), e.reg.WithThird(e.db), schemas.DefaultTimerTopic, timers.Config{Archive: &querytimers.Archive{DB: e.db}}); err != nil {
		e.t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(te.serve))
	e.t.Cleanup(s.Close)
	te.url = s.URL + "/"
	return te
}

func (e *timersEnv) serve(w http.ResponseWriter, r *http.Request) {
	c := timerCall{came: time.Now(), key: r.Header.Get("Idempotency-Key")}
	data, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(data, &c); err != nil {
		e.t.Error(err)
	}
	e.mu.Lock()
	e.calls[c.ID] = append(e.calls[c.ID], c)
	status := e.status
	e.mu.Unlock()
	if status != nil {
		w.WriteHeader(status(c))
	}
	_, _ = io.WriteString(w, `{"ok":true}`)
}

// called returns how many timers were called.
func (e *timersEnv) called() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.calls)
}

// dispatcher starts one.
func (e *timersEnv) dispatcher() (stop func()) {
	e.t.Helper()
	nc := e.connect()
	caller := callback.New(callback.Config{AllowCIDRs: []callback.Range{{Addresses: netip.MustParsePrefix("127.0.0.0/8"), Low: 1, High: 65535}}})
	e.t.Cleanup(caller.Close)
	d, err := dispatch.New(e.t.Context(), nc, dispatch.Config{Registry: e.registry(nc), Caller: caller, Hooks: dispatch.Hooks{
		Fault: func(topic string, lane int, err error) { e.logf("dispatcher %s/%d: %v", topic, lane, err) },
	}})
	if err != nil {
		e.t.Fatal(err)
	}
	return e.background(d.Run)
}

// createTimers creates timers id0 … by many callers, due as the function says.
func (e *timersEnv) createTimers(n int, due func(i int) time.Time) {
	e.t.Helper()
	timerstest.Create(e.t.Context(), e.t, e.Timers, e.url, "id", n, due)
}

// TestTimersFigures prints the lateness of timers at the callback, while router and sink move their
// transitions into ClickHouse: ALMANAC_TIMERS_FIGURES=10000 across a minute.
func TestTimersFigures(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("ALMANAC_TIMERS_FIGURES"))
	if n == 0 {
		t.Skip("set ALMANAC_TIMERS_FIGURES=10000")
	}
	e := setUp(t, embeddedtest.Start(t, embeddedtest.WithSync())).timers()
	e.router()
	e.sink()
	e.dispatcher()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	start := time.Now().Add(5 * time.Second)
	e.createTimers(n, func(i int) time.Time { return start.Add(time.Minute * time.Duration(i) / time.Duration(n)) })
	created := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for e.called() < n {
		select {
		case <-ctx.Done():
			t.Fatalf("%d of %d were called", e.called(), n)
		case <-tick.C:
		}
	}
	var late timerstest.Lateness
	for i := range n {
		var due time.Time
		var came []time.Time
		for _, c := range e.calls[fmt.Sprintf("id%d", i)] {
			due, came = c.Due, append(came, c.came)
		}
		late.Add(due, came...)
	}
	t.Logf("%d across a minute: created until %s after the first was due; %s", n, created.Sub(start).Round(time.Millisecond), &late)
}
