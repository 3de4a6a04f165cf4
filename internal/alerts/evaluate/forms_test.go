package evaluate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/alerts/forms"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	archive "github.com/almanac-events/almanac/internal/query/timers"
	"github.com/almanac-events/almanac/internal/timers/callback"
	"github.com/almanac-events/almanac/internal/timers/dispatch"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// ofForms is a rule that fires once for a user, and ends, with a receiver of each form at a URL.
const ofForms = `
groups:
- name: logins
  topic: app
  rules:
  - {alert: FailedLogins, where: type = "login_failed", window: 3s, condition: ">= 5", by: user_id, labels: {severity: warning}, annotations: {summary: "{{ $value }} failed"}}
  receivers:
  - {name: own, url: "%[1]s/own"}
  - {name: chat, form: slack, url: "%[1]s/services/T/B/X"}
  - {name: pager, form: pagerduty, url: "%[1]s/v2/enqueue", routing_key: R0123456789abcdef}
  - {name: am, form: alertmanager, url: "%[1]s/api/v2/alerts"}
  - {name: never, form: slack, url: "%[1]s/refuses"}
`

// peers stands in for servers of each form, and refuses what they refuse.
type peers struct {
	mu    sync.Mutex
	heard map[string][]string // by receiver: firing or resolved
	keys  map[string]bool     // dedup_key of PagerDuty
	wrong []string
}

func (p *peers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	receiver, heard, status, err := p.take(r.URL.Path, body)
	if err != nil {
		p.wrong = append(p.wrong, fmt.Sprintf("%s: %v: %s", r.URL.Path, err, body))
		status = http.StatusBadRequest
	}
	if heard != "" && !slices.Contains(p.heard[receiver], heard) { // it may come twice
		p.heard[receiver] = append(p.heard[receiver], heard)
	}
	w.WriteHeader(status)
}

// take reads a body by the rules of who is at a path, with the fields that it needs.
func (p *peers) take(path string, body []byte) (receiver, heard string, status int, err error) {
	var own struct {
		ID      string
		Payload struct{ Status string }
	}
	var slack struct {
		Text        string
		Attachments []struct{ Color, Fallback string }
	}
	var pager struct {
		RoutingKey string `json:"routing_key"`
		Action     string `json:"event_action"`
		DedupKey   string `json:"dedup_key"`
		Payload    *struct{ Summary, Source, Severity, Timestamp string }
	}
	var alertmanager []struct {
		Labels, Annotations map[string]string
		StartsAt, EndsAt    time.Time
	}
	switch path {
	case "/own":
		err = json.Unmarshal(body, &own)
		return "own", own.Payload.Status, http.StatusOK, err
	case "/services/T/B/X":
		if err = json.Unmarshal(body, &slack); err == nil && (slack.Text == "" || len(slack.Attachments) != 1 || slack.Attachments[0].Fallback == "") {
			err = errors.New("no_text")
		}
		state := regexp.MustCompile(`^\*\[(FIRING|RESOLVED)\]`).FindStringSubmatch(slack.Text)
		if err == nil && state == nil {
			err = errors.New("it does not say which")
		}
		if err != nil {
			return "chat", "", 0, err
		}
		return "chat", strings.ToLower(state[1]), http.StatusOK, nil
	case "/v2/enqueue":
		if err := json.Unmarshal(body, &pager); err != nil {
			return "pager", "", 0, err
		}
		p.keys[pager.DedupKey] = true
		switch pay := pager.Payload; {
		case pager.RoutingKey != "R0123456789abcdef" || pager.DedupKey == "" || len(pager.DedupKey) > 255:
			return "pager", "", 0, errors.New("invalid keys")
		case pager.Action == "resolve" && pay == nil:
			return "pager", "resolved", http.StatusAccepted, nil
		case pager.Action != "trigger" || pay == nil || pay.Summary == "" || pay.Source == "" || !slices.Contains([]string{"critical", "error", "warning", "info"}, pay.Severity):
			return "pager", "", 0, errors.New("invalid event")
		}
		return "pager", "firing", http.StatusAccepted, nil
	case forms.AlertmanagerPath:
		if err := json.Unmarshal(body, &alertmanager); err != nil {
			return "am", "", 0, err
		}
		if len(alertmanager) != 1 || alertmanager[0].Labels["alertname"] == "" || alertmanager[0].StartsAt.IsZero() || alertmanager[0].EndsAt.Before(alertmanager[0].StartsAt) {
			return "am", "", 0, errors.New("bad alert")
		}
		if alertmanager[0].EndsAt.Sub(alertmanager[0].StartsAt) > 24*time.Hour {
			return "am", "firing", http.StatusOK, nil
		}
		return "am", "resolved", http.StatusOK, nil
	case "/refuses":
		return "never", "", http.StatusForbidden, nil
	}
	return "", "", 0, errors.New("nothing is there")
}

// TestReceivers holds that a receiver of each form hears what it takes when an alert begins and ends, and that one which
// refuses for good is called once, and said to have failed.
func TestReceivers(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	p := &peers{heard: map[string][]string{}, keys: map[string]bool{}}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	d, err := dispatch.New(g.ctx, g.srv.NC(), dispatch.Config{Registry: g.reg, Discover: 200 * time.Millisecond, Caller: callback.New(callback.Config{
		AllowCIDRs: []callback.Range{{Addresses: netip.MustParsePrefix("127.0.0.0/8"), Low: 1, High: 65535}},
	})})
	if err != nil {
		t.Fatal(err)
	}
	g.apply(fmt.Sprintf(ofForms, s.URL))
	g.background(d.Run)
	e := g.evaluator(nil)
	g.rounds(e, func() error { return nil })
	g.send("app", failures(5, "u1")...)
	both := []string{"firing", "resolved"}
	g.rounds(e, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.wrong) > 0 {
			t.Fatalf("refused: %q", p.wrong)
		}
		for _, receiver := range []string{"own", "chat", "pager", "am"} {
			if got := slices.Sorted(slices.Values(p.heard[receiver])); !slices.Equal(got, both) {
				return fmt.Errorf("%s has heard %q", receiver, got)
			}
		}
		return nil
	})
	p.mu.Lock()
	if len(p.keys) != 1 {
		t.Errorf("the pager has keys %v for one alert", p.keys)
	}
	p.mu.Unlock()
	embeddedtest.Eventually(t, longestWait, func() error {
		for _, tm := range g.timersOf("never") {
			if tm.State != timer.StateFailed || tm.Status != http.StatusForbidden || tm.Attempt != 1 {
				return fmt.Errorf("%+v", tm)
			}
		}
		return nil
	})
	embeddedtest.Eventually(t, longestWait, func() error { // once ClickHouse has them, the front need not
		refused, err := archive.Archive{DB: g.db}.Refused(g.ctx, schemas.TopicAlertCalls, time.Hour)
		if err != nil {
			return err
		}
		if len(refused) != 1 || refused[0].Group != "never" || refused[0].Failed != 2 || refused[0].Status != http.StatusForbidden || refused[0].Error != timer.ErrStatus || refused[0].At == 0 {
			return fmt.Errorf("%+v", refused)
		}
		return nil
	})
}

// TestWithdrawn holds that a receiver which keeps what it was told last is not told that an alert began after it ended;
// others are told of each.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(fmt.Sprintf(ofForms, "http://127.0.0.1:9")) // and no dispatcher: nothing is called
	e := g.evaluator(nil)
	g.rounds(e, func() error { return nil })
	g.send("app", failures(5, "u1")...)
	g.rounds(e, g.has("FailedLogins u1 firing", "FailedLogins u1 inactive"))
	for receiver, want := range map[string][]timer.State{
		"own": {timer.StatePending, timer.StatePending}, "chat": {timer.StatePending, timer.StatePending},
		"pager": {timer.StateCancelled, timer.StatePending}, "am": {timer.StateCancelled, timer.StatePending},
	} {
		var got []timer.State
		for _, tm := range g.timersOf(receiver) {
			got = append(got, tm.State)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			g.mu.Lock()
			t.Errorf("%s: %q, want %q; faults: %v", receiver, got, want, errors.Join(g.faults...))
			g.mu.Unlock()
		}
	}
}

// timersOf are the notifications of a receiver, over or not.
func (g *rig) timersOf(receiver string) []timers.Timer {
	g.t.Helper()
	tm, err := timers.Open(g.ctx, g.srv.NC(), g.reg, schemas.TopicAlertCalls, timers.Config{})
	if err != nil {
		g.t.Fatal(err)
	}
	page, err := tm.List(g.ctx, receiver, timers.Filter{})
	if err != nil {
		g.t.Fatal(err)
	}
	return page.Timers
}
