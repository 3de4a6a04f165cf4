package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// What was erased does not come back with a dead letter from before, and a stale
// frame that is stored is not stored again.
func TestDeadLettersLeaveOut(t *testing.T) {
	t.Parallel()
	topic := oneLane("app", 100_000)
	e := running(t, topic)
	newer := topic
	newer.Fields, newer.Version = []schemas.Field{{Name: "ms", Type: schemas.TypeFloat64, Since: 2}}, 2
	publish := func(topic *schemas.Topic, seq uint64) {
		b := frame.NewBuilder(topic)
		for k := range 4 {
			at := feb(k, 1000)
			ev := schemas.Event{Time: at, UserID: fmt.Sprint("u-", k), Message: fmt.Sprint(k)}
			b.Append(&ev, at.UnixNano(), schemas.DerivedID(at.UnixNano(), uint64(topic.Version), uint64(k)))
		}
		f, payload := b.Encode()
		f.Producer, f.Seq = "p", seq
		headers := map[string][]string{}
		f.SetHeaders(headers)
		var h []string
		for k, v := range headers {
			h = append(h, k, v[0])
		}
		e.publish("events.app.2026-02.0", string(payload), h...)
	}
	publish(&topic, 100)
	publish(&topic, 1)   // the same again, too far behind to tell
	publish(&newer, 101) // a schema that is not declared yet
	e.stored("app", 4, 30*time.Second)
	eventually(t, 20*time.Second, func() error {
		rep, err := e.proof("app")
		if err == nil && rep.Dead != 8 {
			err = fmt.Errorf("%d are dead, want 8", rep.Dead)
		}
		return err
	})
	x := e.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: "app", Users: []string{"u-2"}})
	if err == nil {
		job, err = x.Run(t.Context(), "app", job.ID)
	}
	if err != nil || job.Rows != 1 {
		t.Fatalf("%+v, %v", job, err)
	}
	if _, _, err := e.reg.Apply(t.Context(), newer, false); err != nil {
		t.Fatal(err)
	}
	if did := e.resolve(deadletters.Request{Topic: "app"}); did[deadletters.Retried] != 1 || did[deadletters.Kept] != 1 {
		t.Errorf("%v, want the stale one kept", did)
	}
	e.stored("app", 3+3, 30*time.Second)
	if n := e.count("SELECT count() FROM %s WHERE user_id = 'u-2'", e.table("app")); n != 0 {
		t.Errorf("%d events of the erased user came back", n)
	}
	if did := e.resolve(deadletters.Request{Topic: "app", Drop: true}); did[deadletters.Dropped] != 1 {
		t.Errorf("drop: %v", did)
	}
	eventually(t, 20*time.Second, func() error {
		rep, err := e.proof("")
		if err == nil && (!rep.OK() || rep.Dead != 0 || rep.Discarded != 5) {
			err = fmt.Errorf("%+v", rep.Totals)
		}
		return err
	})
}
