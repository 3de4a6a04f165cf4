package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// A frame that was refused and comes again, because its producer had no answer, is a
// repetition: it does not become a second dead letter, and is not stored beside the one that is
// retried. This holds after a repair made the lane's checkpoint again, and for a topic that
// was not declared when the frame came first. A damaged frame may still come whole.
func TestRefusedFrameComesAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		undeclared, checkpoint bool
	}{"an unknown schema": {}, "an unknown topic": {undeclared: true}, "a checkpoint made again": {checkpoint: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := oneLaneTopic()
			e := start(t)
			if !c.undeclared {
				e.apply(topic)
			}
			stop := e.router()
			newer := topic
			newer.Fields, newer.Version = []schemas.Field{{Name: "ms", Type: schemas.TypeFloat64, Since: 2}}, 2
			send := func(seq int, damage func([]byte)) {
				b := frame.NewBuilder(&newer)
				at := time.Date(2026, 2, 3, 4, 5, seq, 0, time.UTC)
				ev := schemas.Event{Time: at, Message: fmt.Sprint("m", seq), Attrs: []schemas.Attr{schemas.Float64("ms", 1)}}
				b.Append(&ev, at.UnixNano(), schemas.DerivedID(at.UnixNano(), uint64(seq), 0))
				f, payload := b.Encode()
				f.Producer, f.Seq = "p", uint64(seq)
				if damage != nil {
					damage(payload)
				}
				headers, list := map[string][]string{}, []string(nil)
				f.SetHeaders(headers)
				for k, v := range headers {
					list = append(list, k, v[0])
				}
				e.publish("events.app.2026-02.0", string(payload), list...)
			}
			flip := func(payload []byte) { payload[len(payload)/2] ^= 4 }
			first := uint64(0)
			if c.checkpoint { // of a lane that was never routed nothing is made again
				first = 1
				e.publish("events.app.2026-02.0", `{"ts":"2026-02-01T00:00:00Z","message":"m0"}`)
			}
			send(1, nil)
			send(2, nil)
			send(2, nil) // at once
			send(3, flip)
			eventually(t, 30*time.Second, func() error {
				dealt := uint64(0)
				for _, cp := range e.checkpoints("app") {
					dealt += cp.Rows + cp.Dead + cp.RepeatedRows
				}
				if dealt < 4+first {
					return fmt.Errorf("%d of %d events are dealt with", dealt, 4+first)
				}
				return nil
			})
			if n := len(e.messages(schemas.StreamShards, schemas.DeadSubject("app"))); n != 3 {
				t.Fatalf("%d dead letters, want 3", n)
			}
			if c.undeclared {
				e.apply(topic)
			}
			e.apply(newer)
			if c.checkpoint {
				stop()
				if err := e.shardsStream().Purge(t.Context(), jetstream.WithPurgeSubject(schemas.RoutedSubject("app", "0"))); err != nil {
					t.Fatal(err)
				}
				plan := e.plan()
				if !does(plan, repair.RestoreCheckpoint) {
					t.Fatalf("the checkpoint is not restored: %+v", plan.Actions)
				}
				e.carryOut(plan)
				e.router()
			}
			e.sink()
			send(1, nil) // the topic takes them now
			send(2, nil)
			send(3, nil) // whole
			e.stored("app", 1+first, 30*time.Second)
			if did := e.resolve(deadletters.Request{Topic: "app"}); did[deadletters.Retried] != 2 || did[deadletters.Kept] != 1 {
				t.Errorf("%v, want 2 retried, and the damaged one kept", did)
			}
			e.stored("app", 3+first, 30*time.Second)
			if did := e.resolve(deadletters.Request{Topic: "app", Drop: true}); did[deadletters.Dropped] != 1 {
				t.Errorf("%v, want 1 dropped", did)
			}
			eventually(t, 30*time.Second, func() error {
				rep, err := e.proof("")
				if err == nil && (!rep.OK() || rep.Accepted != 4+first || rep.Stored != 3+first || rep.Dead != 0 || rep.Discarded != 1 || rep.Pending != 0) {
					err = fmt.Errorf("%+v %s", rep.Totals, rep.Problems)
				}
				return err
			})
			if got := e.count("SELECT uniqExact(id) FROM %s", e.table("app")); got != 3+first {
				t.Errorf("%d ids in %d rows", got, 3+first)
			}
		})
	}
}
