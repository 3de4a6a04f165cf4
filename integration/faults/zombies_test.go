package faults

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// Rows 8, 10 and 11: frozen parts. A router and a sink sleep beyond their lease, others take their work, and they wake
// up in the middle of what they did; NATS and ClickHouse sleep longer than anybody waits for an answer.
func TestZombies(t *testing.T) {
	t.Parallel()
	_, rnd := Seed(t)
	rounds := Rounds(t)
	h := Build(t, Plan{Routers: 2, Sinks: 2, InsertTimeout: 4 * time.Second, Writers: []Writer{{Rate: 1500}, {Rate: 1500}}})
	h.StartWriters()
	flows(t, h)
	var times Times
	for range rounds {
		for _, role := range []Role{RoleRouter, RoleSink, RoleNATS, RoleEngine} {
			p, _ := h.pick(role, rnd)
			began := time.Now()
			p.Stop()
			switch role {
			case RoleRouter, RoleSink: // another has to take over while this one sleeps
				took, err := h.Flows(t.Context(), began)
				if err != nil {
					t.Fatalf("%s sleeps, and no other process takes its work: %v", p.Spec.Name, err)
				}
				times.Add("taken over from a frozen "+string(role), took)
			default:
				if err := backoff.Sleep(t.Context(), Between(rnd, 5*time.Second, 7*time.Second)); err != nil {
					t.Fatal(err)
				}
			}
			woken := time.Now()
			p.Continue()
			took, err := h.Flows(t.Context(), woken)
			if err != nil {
				t.Fatalf("after %s woke up: %v", p.Spec.Name, err)
			}
			times.Add("flows after a waking "+string(role), took)
		}
	}
	h.Prove(2 * time.Minute)
	t.Logf("\n%s", &times)
}

// flows waits until new events of every lane come through.
func flows(t *testing.T, h *Cluster) time.Duration {
	t.Helper()
	took, err := h.Flows(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return took
}

// Row 7: everything killed at once.
func TestKillAll(t *testing.T) {
	t.Parallel()
	Seed(t)
	rounds := Rounds(t)
	h := Build(t, Plan{Routers: 2, Sinks: 2, Writers: []Writer{{Rate: 1500}, {Rate: 1500}}})
	h.StartWriters()
	flows(t, h)
	var times Times
	for range rounds {
		began := time.Now()
		for _, p := range h.Parts() {
			p.Kill()
		}
		for _, p := range []*Part{h.NATS, h.Engine} {
			h.start(p)
		}
		for _, p := range append(h.Routers, h.Sinks...) {
			h.start(p)
		}
		h.Gone = append(h.Gone, h.Writers...)
		h.StartWriters()
		took, err := h.Flows(t.Context(), began)
		if err != nil {
			t.Fatal(err)
		}
		times.Add("kill -9 of everything", took)
	}
	h.Prove(time.Minute)
	t.Logf("\n%s", &times)
}
