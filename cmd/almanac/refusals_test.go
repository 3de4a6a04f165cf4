package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway"
)

// refusalLine is a line of the log.
type refusalLine struct {
	Reason, Why, Token, From, Remedy, Message string
	More                                      int
}

func refusalLines(t *testing.T, log *bytes.Buffer) (out []refusalLine) {
	t.Helper()
	for text := range strings.Lines(log.String()) {
		var l refusalLine
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	log.Reset()
	return out
}

// A flood of unknown secrets from everywhere has a bounded number of lines, and hides neither the client whose token ended nor one that
// lacks a role.
func TestRefusalsAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		n := newNumbers(zerolog.Nop())
		refused := n.refused(zerolog.New(&log))
		honest := netip.MustParseAddr("192.0.2.7")
		flood := func() {
			for i := range 10_000 {
				refused(gateway.Refusal{Reason: access.ReasonUnknown, Peer: netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}), Why: fmt.Sprintf("an id that no token has: %06d", i)})
			}
		}
		flood()
		if lines := refusalLines(t, &log); len(lines) != maxRefusedNetworks+1 || lines[0].From != "10.0.0.1" || lines[0].Remedy == "" {
			t.Fatalf("%d lines, the first is %+v", len(lines), lines[0])
		}
		flood()
		denied := &access.Denied{Name: "api", Action: access.Send, Topic: "shop", Roles: access.RolesFor(access.Send)}
		for range 3 {
			refused(gateway.Refusal{Reason: access.ReasonExpired, Token: "web", Peer: honest, Why: "token web ended 2026-11-01T00:00:00Z"})
			refused(gateway.Refusal{Reason: access.ReasonDenied, Token: "api", Peer: honest, Why: denied.Error()})
			refused(gateway.Refusal{Reason: "cross_origin"}) // says all by its reason
		}
		lines := refusalLines(t, &log)
		if len(lines) != 2 {
			t.Fatalf("beside a flood: %+v", lines)
		}
		for i, want := range []refusalLine{
			{"expired", "token web ended", "web", "192.0.2.7", "almanac token rotate web", "refused", 0},
			{"denied", "the role write", "api", "192.0.2.7", "has the role", "refused", 0},
		} {
			got := lines[i]
			if got.Reason != want.Reason || got.Token != want.Token || got.From != want.From || got.More != want.More ||
				!strings.Contains(got.Why, want.Why) || !strings.Contains(got.Remedy, want.Remedy) || !strings.Contains(got.Message, want.Message) {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		if !strings.Contains(lines[1].Why, "shop") {
			t.Errorf("the topic is not said: %s", lines[1].Why)
		}
		<-time.After(refusalPeriod)
		refused(gateway.Refusal{Reason: access.ReasonExpired, Token: "web", Peer: honest, Why: "token web ended 2026-11-01T00:00:00Z"})
		flood()
		if lines := refusalLines(t, &log); len(lines) != maxRefusedNetworks+2 || lines[0].Token != "web" || lines[0].More != 2 {
			t.Errorf("a minute later %d lines, the first is %+v", len(lines), lines[0])
		}
	})
}

// A line has neither a secret nor more of a client's words than its bound, and names neither host nor address where there is none.
func TestWhatALineOfARefusalHolds(t *testing.T) {
	t.Parallel()
	secret, _ := access.NewSecret()
	for name, c := range map[string]struct {
		of   gateway.Refusal
		says func(refusalLine) bool
	}{
		"a secret": {gateway.Refusal{Reason: access.ReasonNone, Why: "topic " + secret}, func(l refusalLine) bool { return !strings.Contains(l.Why, secret) && l.Why != "" && l.From == "" }},
		"a long topic": {gateway.Refusal{Reason: access.ReasonNone, Why: strings.Repeat("é", 10_000)}, func(l refusalLine) bool {
			return len(l.Why) <= maxRefusedWhy+len("…") && strings.HasSuffix(l.Why, "é…")
		}},
		"without a peer": {gateway.Refusal{Reason: access.ReasonWrong, Token: "api", Why: "x"}, func(l refusalLine) bool { return l.Token == "api" && l.From == "" }},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			newNumbers(zerolog.Nop()).refused(zerolog.New(&log))(c.of)
			if lines := refusalLines(t, &log); len(lines) != 1 || !c.says(lines[0]) {
				t.Errorf("%+v", lines)
			}
		})
	}
	for address, want := range map[string]string{"192.0.2.7": "192.0.2.0/24", "::ffff:192.0.2.7": "192.0.2.0/24", "2001:db8::1%eth0": "2001:db8::/64", "": "nowhere"} {
		a, _ := netip.ParseAddr(address)
		if got := network(a); got != want {
			t.Errorf("%q is of %q, want %q", address, got, want)
		}
	}
}

// Kinds beyond the bound are one, until those before were silent for a period.
func TestRationer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := rationerOf(time.Minute, 2)
		for i, step := range []struct {
			wait time.Duration
			kind string
			held int
			ok   bool
		}{
			{0, "a", 0, true}, {0, "a", 0, false}, {0, "b", 0, true},
			{0, "c", 0, true}, {0, "d", 0, false}, {0, "c", 0, false}, // share one ration
			{time.Minute, "a", 1, true}, // b is forgotten for the next
			{0, "e", 0, true}, {0, "f", 2, true}, {0, "b", 0, false},
		} {
			<-time.After(step.wait)
			if held, ok := r.pass(step.kind); held != step.held || ok != step.ok {
				t.Errorf("step %d, %s: %d, %t", i, step.kind, held, ok)
			}
		}
	})
}
