package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/inputtest"
)

// failedLogin is a failed login in the real log of a machine, with its user.
var failedLogin = regexp.MustCompile(`Failed password for (?:invalid user )?(?P<user_id>\S+) from`)

// failedLogins are such lines of the real log, and who failed at least five times in them. They are none where the log is not there.
func failedLogins(t *testing.T) (lines string, users []string) {
	t.Helper()
	f, err := os.Open(filepath.Join(inputtest.DataDir(t), "auth-syslog.log"))
	if os.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	times, all := map[string]int{}, strings.Builder{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if m := failedLogin.FindStringSubmatch(s.Text()); m != nil {
			all.WriteString(s.Text() + "\n")
			if times[m[1]]++; times[m[1]] == 5 {
				users = append(users, m[1])
			}
		}
	}
	return all.String(), users
}

// silence is that of the rule, and silenceWithin how much later than its time its receiver hears of it.
const (
	silence       = 30 * time.Second
	silenceWithin = 30 * time.Second
	// hookAway is how long the receiver answers 500 from the first attempt of each notification on.
	hookAway = time.Minute
	// alertsEnd is when all of it is over: retries are two minutes apart at most.
	alertsEnd = 15 * time.Minute
)

// TestAlertsWhileTheirLeaseMoves holds that "5 failed logins of one user within a minute" fires and ends once for each user while the two
// processes that evaluate are killed by turns, and the router and the dispatcher in each round, and that a receiver that answers 500 for a minute hears of each under one key; a
// silence reaches it within 30 s of its time. It takes minutes, so there is none without the variable.
func TestAlertsWhileTheirLeaseMoves(t *testing.T) {
	t.Parallel()
	kills, err := strconv.Atoi(os.Getenv(alertKillsEnv))
	if err != nil {
		t.Skip(alertKillsEnv + " says how often")
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("ALMANAC_FAULT_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("ALMANAC_FAULT_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	h := newHook(0, hookAway)
	srv := httptest.NewServer(h)
	defer srv.Close()
	p := newApart(t)
	op := p.as(access.UserOperator)
	op.ok("", "topics", "apply", "pulse")
	router, dispatcher := p.part(access.UserRouter, "router"), p.part(access.UserTimers, "timers", "run")
	evaluators := []*daemon{p.part(access.UserSink, "sink"), p.part(access.UserSink, "sink")}
	op.ok(`
groups:
- name: logins
  rules:
  - {alert: FailedLogins, topic: app, where: 'type = "login_failed" OR message contains "Failed password"', window: 1m, condition: ">= 5", by: user_id}
  - {alert: Quiet, topic: pulse, silence: `+silence.String()+`}
  receivers:
  - {name: ops, url: "`+srv.URL+`"}
`, "alerts", "apply", "-f", "-")
	producer := p.as(access.UserProducer)
	producer.ok("beat\n", "send", "pulse")
	lines, users := failedLogins(t)
	if lines != "" {
		producer.ok(lines, "send", "app", "--format", "text", "--extract", failedLogin.String())
	}
	t.Logf("%d users of the real log", len(users))
	for i := range kills + 1 {
		user := "made-" + strconv.Itoa(i)
		users = append(users, user)
		producer.ok(strings.Repeat(`{"type":"login_failed","user_id":"`+user+`"}`+"\n", 5)+`{"type":"login_failed","user_id":"once-`+user+`"}`+"\n", "send", "app", "--format", "ndjson")
		if i == kills {
			break
		}
		kill := func(d *daemon) {
			time.AfterFunc(time.Duration(random.IntN(3000))*time.Millisecond, func() { _ = d.cmd.Process.Signal(syscall.SIGKILL) })
			<-d.done
		}
		// One after the other in an order of its own each round, so that each is away while the others work.
		for _, part := range random.Perm(3) {
			switch part {
			case 0:
				kill(evaluators[i%len(evaluators)])
				evaluators[i%len(evaluators)] = p.part(access.UserSink, "sink")
			case 1:
				kill(router)
				router = p.part(access.UserRouter, "router")
			case 2:
				kill(dispatcher)
				dispatcher = p.part(access.UserTimers, "timers", "run")
			}
		}
	}
	want := []string{"Quiet  firing"}
	for _, u := range users {
		want = append(want, "FailedLogins "+u+" firing", "FailedLogins "+u+" inactive")
	}
	slices.Sort(want)
	reader := p.as(access.UserReader)
	var quiet time.Time
	embeddedtest.Eventually(t, alertsEnd, func() error {
		var got []string
		for _, a := range decoded[alerts.Page](reader, "alerts", "history", "--limit", "1000", "-o", "json").Alerts {
			got = append(got, fmt.Sprintf("%s %s %s", a.Rule, a.Value, a.State))
			if a.Rule == "Quiet" {
				quiet = a.At
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("the transitions are %q, want %q", got, want)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.took) != len(want) {
			return fmt.Errorf("the receiver took %d of %d: %v", len(h.took), len(want), h.took)
		}
		return nil
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	for what, ids := range h.seen {
		for id, attempts := range ids {
			if len(ids) != 1 || attempts < 2 {
				t.Errorf("%s came under %d keys, under %s %d times", what, len(ids), id, attempts)
			}
		}
	}
	late := h.at[" firing"].Sub(quiet)
	t.Logf("%d kills of each part, %d notifications; the silence was told of %s after its time", kills, len(h.took), late.Round(time.Millisecond))
	if late > silenceWithin {
		t.Errorf("the silence was told of %s after its time, more than %s", late, silenceWithin)
	}
	for _, line := range p.nats.refusals() {
		t.Error(line)
	}
}
