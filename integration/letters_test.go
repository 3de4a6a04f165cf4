package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// resolve settles letters and says what became of how many.
func (e *env) resolve(q deadletters.Request) map[string]int {
	e.t.Helper()
	nc := e.connect()
	d, err := deadletters.New(e.t.Context(), nc, e.registry(nc), nil, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	did := map[string]int{}
	if err := d.Resolve(e.t.Context(), q, func(o deadletters.Outcome) error { did[o.Did]++; return nil }); err != nil {
		e.t.Fatal(err)
	}
	return did
}

// Dead letters are sent again once the topic takes them, each once however often it
// is begun, and dropped for good; the books add up at every point.
func TestDeadLettersResolved(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.Lanes = 2
	e := running(t, topic)
	newer := topic
	newer.Fields, newer.Version = []schemas.Field{{Name: "ms", Type: schemas.TypeFloat64, Since: 2}}, 2
	frame := func(subject string, i int) {
		b := frame.NewBuilder(&newer)
		at := time.Date(2026, 2, 3, 4, 5, i, 0, time.UTC)
		for k := range 10 {
			ev := schemas.Event{Time: at, UserID: fmt.Sprint(k), Message: fmt.Sprintf("m%d-%d", i, k), Attrs: []schemas.Attr{schemas.Float64("ms", float64(k))}}
			b.Append(&ev, at.UnixNano(), schemas.DerivedID(at.UnixNano(), uint64(i), uint64(k)))
		}
		f, payload := b.Encode()
		f.Producer, f.Seq = "p", uint64(i)
		var h []string
		headers := map[string][]string{}
		f.SetHeaders(headers)
		for k, v := range headers {
			h = append(h, k, v[0])
		}
		e.publish(subject, string(payload), h...)
	}
	const frames = 70
	for i := 1; i <= frames; i++ {
		frame(fmt.Sprintf("events.app.2026-02.%d", i%2), i) // a schema that is not declared yet
	}
	frame("events.app.2026-02.9", frames+1) // and a lane there is not
	e.publish("events.app.2026-02.0", `{"ts":"2026-03-01T00:00:00Z","message":"wrong month"}`)
	e.publish("events.app.2026-02.0", `no json at all`)
	const dead = (frames+1)*10 + 2
	eventually(t, 20*time.Second, func() error {
		rep, err := e.proof("app")
		if err == nil && rep.Dead != dead {
			err = fmt.Errorf("%d are dead, want %d", rep.Dead, dead)
		}
		return err
	})
	if did := e.resolve(deadletters.Request{Topic: "app"}); did[deadletters.Kept] != frames+2 || did[deadletters.Retried] != 1 {
		t.Errorf("before the schema is known: %v, want only the wrong month to go", did)
	}
	if _, _, err := e.reg.Apply(t.Context(), newer, false); err != nil {
		t.Fatal(err)
	}
	dry := e.resolve(deadletters.Request{Topic: "app", DryRun: true})
	if dry[deadletters.Retried] != frames+1 || dry[deadletters.Kept] != 1 {
		t.Errorf("dry run: %v", dry)
	}
	all := e.messages(schemas.StreamShards, schemas.DeadSubject("app"))
	last := e.stream(schemas.StreamEvents).LastSeq
	// One alone, by its number. Letters of the lane there is not come in between, in any order.
	unknown := slices.IndexFunc(all, func(m *streams.Message) bool {
		return m.Header.Get(schemas.HeaderReason) == schemas.Reason(schemas.ErrFrameSchema)
	})
	if unknown < 0 {
		t.Fatalf("none of %d letters is of an unknown schema", len(all))
	}
	e.resolve(deadletters.Request{Topic: "app", Letter: schemas.Source{Seq: all[unknown].Sequence}})
	if did := e.resolve(deadletters.Request{Topic: "app", Reason: "unknown-schema"}); did[deadletters.Retried] != frames-1 {
		t.Errorf("by reason: %v", did)
	}
	if did := e.resolve(deadletters.Request{Topic: "app"}); did[deadletters.Retried] != 1 || did[deadletters.Kept] != 1 {
		t.Errorf("the rest: %v", did)
	}
	e.stored("app", dead-1, 20*time.Second)
	// As if a process was killed after sending and before taking anything out.
	again := e.messages(schemas.StreamEvents, schemas.TopicFilter("app"))
	again = slices.DeleteFunc(again, func(m *streams.Message) bool { return m.Sequence <= last }) // strays are taken out late
	if len(again) != frames+2 {                                                                   // that of the lane there is not became two, one a lane
		t.Errorf("%d messages were sent again, want %d", len(again), frames+2)
	}
	e.sendAgain(again)
	if did := e.resolve(deadletters.Request{Topic: "app", Drop: true}); did[deadletters.Dropped] != 1 {
		t.Errorf("drop: %v", did)
	}
	eventually(t, 20*time.Second, func() error {
		rep, err := e.proof("")
		if err == nil && (!rep.OK() || rep.Accepted != dead || rep.Stored != dead-1 || rep.Dead != 0 || rep.Discarded != 1 || rep.Pending != 0) {
			text, _ := json.Marshal(rep.Totals)
			err = fmt.Errorf("%s %s", text, rep.Problems)
		}
		return err
	})
	if got := e.count("SELECT uniqExact(message) FROM %s WHERE ms >= 0", e.table("app")); got != dead-1 {
		t.Errorf("%d messages, want %d", got, dead-1)
	}
	nc := e.connect()
	d, err := deadletters.New(t.Context(), nc, e.registry(nc), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Resolve(t.Context(), deadletters.Request{Topic: "app", Letter: schemas.Source{Seq: 1}}, func(deadletters.Outcome) error { return nil })
	if !errors.Is(err, query.ErrNoDeadLetter) || !errors.Is(err, schemas.ErrRequest) {
		t.Errorf("no such letter: %v", err)
	}
}

// sendAgain sends what letters were sent again as once more: what a kill between
// sending and taking out leads to. The router must know them.
func (e *env) sendAgain(msgs []*streams.Message) {
	e.t.Helper()
	before := e.routedSoFar("app")
	for _, raw := range msgs {
		m := &nats.Msg{Subject: raw.Subject, Header: raw.Header, Data: raw.Data}
		m.Header.Del(jetstream.MsgIDHeader) // as after the duplicate window
		if _, err := e.js().PublishMsg(e.t.Context(), m); err != nil {
			e.t.Fatal(err)
		}
	}
	eventually(e.t, 20*time.Second, func() error {
		var repeated uint64
		for _, cp := range e.checkpoints("app") {
			repeated += cp.RepeatedFrames
		}
		if repeated < uint64(len(msgs)) {
			return fmt.Errorf("%d of %d frames were known", repeated, len(msgs))
		}
		return nil
	})
	if got := e.routedSoFar("app"); got != before {
		e.t.Errorf("%d events were routed twice", got-before)
	}
}
