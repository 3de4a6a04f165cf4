package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/internal/timers/timerstest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// hooks are the callbacks that came, by timer.
type hooks struct {
	mu    sync.Mutex
	calls map[string][]hook
}

type hook struct {
	ID      string
	Due     time.Time
	Attempt int64
	came    time.Time
	key     string
}

// keep enters a call; false: its dispatcher was killed while it wrote.
func (h *hooks) keep(r *http.Request) (hook, bool) {
	c := hook{came: time.Now(), key: r.Header.Get("Idempotency-Key")}
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return c, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[c.ID] = append(h.calls[c.ID], c)
	return c, true
}

// ServeHTTP fails the first attempt of every fifth timer.
func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := h.keep(r)
	if !ok {
		return
	}
	if n, _ := strconv.Atoi(c.ID); n%5 == 0 && c.Attempt == 1 {
		w.WriteHeader(http.StatusInternalServerError)
	}
	_, _ = io.WriteString(w, `{"ok":true}`)
}

func (h *hooks) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.calls)
}

func number(name string, small int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return small
}

// TestTimersUnderKills kills dispatchers, NATS, router, sink and ClickHouse while timers fall due, and has the
// cleaner take out what is over meanwhile. Every timer is called, none early; what is called twice has
// the same key; and the history of each is complete: created once, over once, its attempts without a gap.
// ALMANAC_TIMERS_KILLED timers, ALMANAC_TIMERS_KILLS kills of each part.
func TestTimersUnderKills(t *testing.T) {
	n, kills := number("ALMANAC_TIMERS_KILLED", 400), number("ALMANAC_TIMERS_KILLS", 1)
	_, rnd := Seed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+time.Duration(kills)*time.Minute)
	defer cancel()
	h, reg, all := ofTimers(ctx, t, Plan{Dispatchers: 2, Keep: 15 * time.Second}, func(g *timer.Group) {
		g.Slots, g.Retry = 16, &timer.Policy{Attempts: 3, Initial: 300 * time.Millisecond}
	})
	came := &hooks{calls: map[string][]hook{}}
	server := httptest.NewServer(came)
	defer server.Close()

	roles := []Role{RoleTimers, RoleNATS, RoleRouter, RoleSink, RoleEngine}
	span := time.Duration(kills*len(roles)) * 1500 * time.Millisecond
	start := time.Now().Add(2*time.Second + time.Duration(n)*3*time.Millisecond)
	timerstest.Create(ctx, t, all, server.URL, "", n, func(i int) time.Time { return start.Add(span * time.Duration(i) / time.Duration(n)) })
	if err := backoff.Sleep(ctx, time.Until(start)); err != nil {
		t.Fatal(err)
	}
	for range kills {
		for _, role := range roles {
			if err := backoff.Sleep(ctx, Between(rnd, 0, time.Second)); err != nil {
				t.Fatal(err)
			}
			p, _ := h.pick(role, rnd)
			p.Kill()
			h.start(p)
			h.ready(p)
		}
	}
	err := until(ctx, recoveryLimit, 100*time.Millisecond, func(context.Context) error {
		if got := came.count(); got < n {
			return fmt.Errorf("%d of %d timers were called", got, n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	const over = "'done','failed','cancelled'"
	err = until(ctx, recoveryLimit, 200*time.Millisecond, func(ctx context.Context) error {
		got, err := h.SQL.Number(ctx, "SELECT uniqExactIf(timer_id, state IN (%s)) FROM %s", over, schemas.DefaultTimerTopic)
		if err == nil && got < uint64(n) {
			err = fmt.Errorf("%d of %d timers are over in ClickHouse", got, n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	came.proof(t, n)
	proven(ctx, t, h, reg, schemas.DefaultTimerTopic, false) // which waits for all rows: those of another shard may come after a timer's last
	incomplete := fmt.Sprintf("(SELECT timer_id, countIf(state = 'created') AS c, countIf(state IN (%s)) AS o, maxIf(attempt, state = 'firing') AS m, uniqExactIf(attempt, state = 'firing') AS u, "+
		"arraySort(groupArray((seq, revision, toString(state), attempt))) AS history FROM %s GROUP BY timer_id HAVING c != 1 OR o != 1 OR m != u OR m != if(toUInt64(timer_id) %% 5 = 0, 2, 1))", over, schemas.DefaultTimerTopic)
	gaps, err := h.SQL.Number(ctx, "SELECT count() FROM %s", incomplete)
	if err != nil || gaps != 0 {
		var some strings.Builder
		_ = h.SQL.Do(ctx, "SELECT timer_id, toString(history) FROM "+incomplete+" ORDER BY toUInt64(timer_id) LIMIT 10", func(r io.Reader) error {
			_, err := io.Copy(&some, r)
			return err
		})
		t.Errorf("%d timers have an incomplete history, %v:\n%s", gaps, err, &some)
	}
}

// proof holds what was called to what was asked for.
func (h *hooks) proof(t *testing.T, n int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	twice := 0
	for i := range n {
		byAttempt := map[int64]string{}
		for _, c := range h.calls[strconv.Itoa(i)] {
			if c.came.Before(c.Due) {
				t.Errorf("timer %d came %s early", i, c.Due.Sub(c.came))
			}
			if key, again := byAttempt[c.Attempt]; again {
				twice++
				if key != c.key {
					t.Errorf("timer %d, attempt %d: keys %s and %s", i, c.Attempt, key, c.key)
				}
			}
			byAttempt[c.Attempt] = c.key
		}
		want := 1
		if i%5 == 0 {
			want = 2
		}
		if len(byAttempt) != want {
			t.Errorf("timer %d: attempts %v, expected %d", i, byAttempt, want)
		}
	}
	t.Logf("%d timers, %d calls were made again under their key", n, twice)
}

// proven has verify prove a topic, with its front or without.
func proven(ctx context.Context, t *testing.T, h *Cluster, reg *registry.Registry, topic string, front bool) {
	t.Helper()
	db, err := tables.Open(h.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	v, err := verify.New(h.NC, reg, db)
	if err != nil {
		t.Fatal(err)
	}
	if front {
		v = v.Fronts()
	}
	err = until(ctx, recoveryLimit, 200*time.Millisecond, func(ctx context.Context) error {
		r, err := v.Run(ctx, topic)
		if err == nil && (!r.OK() || r.Topics[0].Pending > 0 || r.Topics[0].Dead > 0) {
			err = fmt.Errorf("%+v %q", r.Topics[0], r.Problems)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
