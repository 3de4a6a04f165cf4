package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/schemas"
)

// Rows 17 and 34: ClickHouse is gone for long. SHARDS fills to its bound, then EVENTS to its own, then the producers'
// buffers, then each does what its policy says. Nothing stored is evicted, and all of it drains afterwards.
func TestBackpressure(t *testing.T) {
	t.Parallel()
	Seed(t)
	program := command(t)
	const bound = 4 << 20
	h := Build(t, Plan{
		Limits: schemas.StreamLimits{EventsBytes: bound, ShardsBytes: bound, RegistryBytes: 16 << 20, Replicas: 1},
		Writers: []Writer{
			{Rate: 6000, BufferEvents: 20_000},
			{Rate: 6000, BufferEvents: 20_000},
		},
	})
	loose := h.Plan.Writers[0]
	loose.Topic = Topic
	for _, policy := range []string{"drop_newest", "drop_oldest"} {
		loose.Policy = policy
		h.Writers = append(h.Writers, h.part(Spec{Role: RoleProducer, Name: policy, NATS: h.natsURL, Writer: loose}))
	}
	h.StartWriters()
	flows(t, h)
	h.Engine.Kill()
	full := func(name string) (jetstream.StreamState, error) {
		js, err := jetstream.New(h.NC)
		if err != nil {
			return jetstream.StreamState{}, err
		}
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			return jetstream.StreamState{}, err
		}
		return s.CachedInfo().State, nil
	}
	for _, name := range []string{"SHARDS", "EVENTS"} {
		await(t, startWait, func(context.Context) error {
			state, err := full(name)
			if err == nil && state.Bytes < bound*9/10 {
				err = fmt.Errorf("%s holds %d bytes of %d", name, state.Bytes, bound)
			}
			return err
		})
		t.Logf("%s is full", name)
	}
	for _, w := range h.Writers[:2] { // those that block stand still
		await(t, startWait, func(ctx context.Context) error { return h.standsStill(ctx, w) })
	}
	found, well := h.doctor(t, program)
	if well {
		t.Error("doctor exits 0")
	}
	diagnosed(t, found, "ClickHouse", "fail", "")
	diagnosed(t, found, "stream SHARDS", "fail", "full")
	diagnosed(t, found, "stream EVENTS", "fail", "full")
	diagnosed(t, found, "producers", "fail", "nothing is accepted")
	began := time.Now()
	h.start(h.Engine)
	took, err := h.Flows(t.Context(), began)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("flows again %s after the engine came back", took)
	// The journals of the two that drop hold nothing; what they logged and what they dropped is in their own count.
	h.Heal()
	rep := h.Drain(2 * time.Minute)
	if !rep.OK() {
		t.Errorf("verify: %v", rep.Problems)
	}
	found, _ = h.doctor(t, program)
	diagnosed(t, found, "lag", "ok", "everything routed is stored")
	v, err := h.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("checker: %s", v)
	if !v.OK() {
		t.Error("the promise is broken")
	}
	for _, w := range h.Writers[2:] {
		logged, stored, dropped := w.Said("logged"), w.Said("stored"), w.Said("dropped")
		t.Logf("%s: %d logged, %d stored, %d dropped", w.Spec.Name, logged, stored, dropped)
		if dropped == 0 || logged != stored+dropped {
			t.Errorf("%s: %d logged are not %d stored and %d dropped", w.Spec.Name, logged, stored, dropped)
		}
	}
	for _, w := range h.Writers[:2] {
		if n := w.Said("dropped"); n != 0 {
			t.Errorf("%s blocks and dropped %d", w.Spec.Name, n)
		}
	}
}

// standsStill is nil when a producer was told nothing for a second.
func (h *Cluster) standsStill(ctx context.Context, w *Part) error {
	before, err := told(w)
	if err != nil {
		return err
	}
	if err := backoff.Sleep(ctx, time.Second); err != nil {
		return err
	}
	after, err := told(w)
	if err == nil && after != before {
		err = fmt.Errorf("%s was told of %d more events", w.Spec.Name, after-before)
	}
	return err
}

func told(w *Part) (int, error) {
	j, err := readJournal(w.Spec.Writer.Journal)
	if err != nil {
		return 0, err
	}
	return j.Stored.Len(), nil
}
