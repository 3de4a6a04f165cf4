package faults

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// frozenGroups have a secret each, which is their name often enough.
var frozenGroups = []string{"g", "signed-a", "signed-b", "paused"}

func frozenKey(group string) []byte { return []byte((group + "................................")[:32]) }

// frozenSecrets is what timers_secrets says of them.
func frozenSecrets() (out string) {
	for _, g := range frozenGroups {
		if out != "" {
			out += ";"
		}
		out += g + "@*=whsec_" + base64.StdEncoding.EncodeToString(frozenKey(g))
	}
	return out
}

// signedBy returns the group whose secret signed a call; empty: none.
func signedBy(h http.Header, body []byte) string {
	for _, g := range frozenGroups {
		m := hmac.New(sha256.New, frozenKey(g))
		_, _ = fmt.Fprintf(m, "%s.%s.%s", h.Get("webhook-id"), h.Get("webhook-timestamp"), body)
		if "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)) == h.Get("webhook-signature") {
			return g
		}
	}
	return ""
}

// TestTimersThroughFreezes stops NATS for seconds, again and again, while timers fall due. The dispatchers live through
// it, every timer is called, none early, each under the secret of its own group, and none of a group that is paused.
// ALMANAC_TIMERS_FROZEN timers, ALMANAC_TIMERS_FREEZES freezes of ALMANAC_TIMERS_FREEZE_SECONDS.
func TestTimersThroughFreezes(t *testing.T) {
	n, freezes, long := number("ALMANAC_TIMERS_FROZEN", 300), number("ALMANAC_TIMERS_FREEZES", 1), time.Duration(number("ALMANAC_TIMERS_FREEZE_SECONDS", 7))*time.Second
	_, rnd := Seed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+time.Duration(freezes)*3*long)
	defer cancel()
	t.Setenv(secretsEnv, frozenSecrets())
	h, reg, all := ofTimers(ctx, t, Plan{Dispatchers: 2}, func(g *timer.Group) { g.Slots, g.SecretRef = 16, "g" })
	for _, name := range frozenGroups[1:] {
		_, _, err := timers.ApplyGroup(ctx, reg, schemas.DefaultTimerTopic, name, func(g *timer.Group) error {
			g.Slots, g.SecretRef, g.Paused = 16, name, name == "paused"
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	calls := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came := time.Now()
		body, err := io.ReadAll(r.Body)
		var c struct {
			ID, Group string
			Due       time.Time
		}
		if err == nil {
			err = json.Unmarshal(body, &c)
		}
		if by := signedBy(r.Header, body); err != nil || by != c.Group || c.Group == "paused" || came.Before(c.Due) {
			t.Errorf("%+v came at %s, signed by the secret of %q: %v", c, came, by, err)
		}
		mu.Lock()
		calls[c.ID]++
		mu.Unlock()
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	defer server.Close()

	round := long + 5*time.Second
	start := time.Now().Add(2*time.Second + time.Duration(n)*10*time.Millisecond)
	span := time.Duration(freezes) * round
	embeddedtest.Each(32, n, func(i int) {
		due := start.Add(span * time.Duration(i) / time.Duration(n))
		if _, _, err := all.Create(ctx, timers.Draft{Group: frozenGroups[i%len(frozenGroups)], ID: fmt.Sprint(i), Due: due, URL: server.URL}); err != nil {
			t.Error(err)
		}
	})
	for k := range freezes {
		if err := backoff.Sleep(ctx, time.Until(start.Add(round*time.Duration(k)))+Between(rnd, 0, 2*time.Second)); err != nil {
			t.Fatal(err)
		}
		p, _ := h.pick(RoleNATS, rnd)
		p.Stop()
		err := backoff.Sleep(ctx, long)
		p.Continue()
		if err != nil {
			t.Fatal(err)
		}
	}
	due := n - n/len(frozenGroups)
	err := until(ctx, recoveryLimit, 200*time.Millisecond, func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if len(calls) < due {
			return fmt.Errorf("%d of %d timers were called", len(calls), due)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, p := range h.Dispatchers {
		if !p.Alive() {
			t.Errorf("%s ended:\n%s", p.Spec.Name, p.Words())
		}
	}
	mu.Lock()
	defer mu.Unlock()
	twice := 0
	for _, n := range calls {
		twice += n - 1
	}
	t.Logf("%d timers through %d freezes of %s: %d calls were made again", due, freezes, long, twice)
}
