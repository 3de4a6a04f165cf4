package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// alertKillsEnv is how often TestAlertsUnderKills kills all parts; make faults says 10.
const alertKillsEnv = "ALMANAC_ALERT_KILLS"

// hook receives notifications, and refuses the first attempts of each with 500, or all within a time of the first.
type hook struct {
	mu    sync.Mutex
	seen  map[string]map[string]int // attempts by alert, then by the notification's id
	took  map[string]bool           // the alerts of which one was taken
	first map[string]time.Time      // when an id was first received
	at    map[string]time.Time      // when an alert was first received
	most  int
	away  time.Duration
}

func newHook(most int, away time.Duration) *hook {
	return &hook{seen: map[string]map[string]int{}, took: map[string]bool{}, first: map[string]time.Time{}, at: map[string]time.Time{}, most: most, away: away}
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var n struct {
		ID      string
		Payload struct {
			Status string
			Labels map[string]string
		}
	}
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &n); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	what := n.Payload.Labels["user_id"] + " " + n.Payload.Status
	if h.seen[what] == nil {
		h.seen[what] = map[string]int{}
	}
	now := time.Now()
	if h.seen[what][n.ID]++; h.seen[what][n.ID] == 1 {
		h.first[n.ID] = now
		if h.at[what].IsZero() {
			h.at[what] = now
		}
	}
	if h.seen[what][n.ID] <= h.most || now.Sub(h.first[n.ID]) < h.away {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	h.took[what] = true
}

// TestAlertsUnderKills holds that "5 failed logins of one user" fires and ends once for each user, whenever all parts are killed, and
// that its receiver, which answers 500 at first, hears of each under one key.
func TestAlertsUnderKills(t *testing.T) {
	t.Parallel()
	kills := 2
	if n, err := strconv.Atoi(os.Getenv(alertKillsEnv)); err == nil {
		kills = n
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("ALMANAC_FAULT_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("ALMANAC_FAULT_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	h := newHook(1, 0)
	srv := httptest.NewServer(h)
	defer srv.Close()
	b := newBox(t, "ALMANAC_TIMERS_ALLOW_CIDRS=127.0.0.1/32:1-65535")
	up := b.up()
	b.ok(`
groups:
- name: logins
  topic: app
  rules:
  - {alert: FailedLogins, where: 'type = "login_failed"', window: 10s, condition: ">= 5", by: user_id}
  receivers:
  - {name: ops, url: "`+srv.URL+`"}
`, "alerts", "apply", "-f", "-")
	embeddedtest.Eventually(t, maxWait, func() error { // what comes before a topic is first evaluated is in no window
		s, err := tryDecoded[alerts.Overview](b, "alerts", "ls", "-o", "json")
		if err == nil && (len(s.Topics) != 1 || s.Topics[0].UpTo.IsZero()) {
			err = fmt.Errorf("not evaluated yet: %+v", s.Topics)
		}
		return err
	})
	var users, want []string
	for i := range kills + 1 {
		user := "u" + strconv.Itoa(i)
		users = append(users, user)
		b.ok(strings.Repeat(`{"type":"login_failed","user_id":"`+user+`"}`+"\n", 5)+`{"type":"login_failed","user_id":"once-`+user+`"}`+"\n", "send", "app", "--format", "ndjson")
		if i == kills {
			break
		}
		time.AfterFunc(time.Duration(random.IntN(3000))*time.Millisecond, func() { _ = up.cmd.Process.Signal(syscall.SIGKILL) })
		<-up.done
		up = b.up()
	}
	for _, u := range users {
		want = append(want, u+" firing", u+" inactive")
	}
	slices.Sort(want)
	embeddedtest.Eventually(t, maxWait, func() error {
		var got []string
		page, err := tryDecoded[alerts.Page](b, "alerts", "history", "-o", "json")
		if err != nil {
			return err
		}
		for _, a := range page.Alerts {
			got = append(got, a.Value+" "+string(a.State))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("the transitions are %q, want %q", got, want)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.took) != 2*len(users) {
			return fmt.Errorf("the receiver took %v", h.took)
		}
		return nil
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	for what, ids := range h.seen {
		if len(ids) != 1 {
			t.Errorf("%s came under %d keys: %v", what, len(ids), ids)
		}
	}
	if s := decoded[alerts.Overview](b, "alerts", "ls", "-o", "json"); len(s.Alerts) != 0 || len(s.Topics) != 1 || s.Topics[0].UpTo.IsZero() {
		t.Errorf("in the end there are %+v", s)
	}
}
