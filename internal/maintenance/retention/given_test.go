package retention

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// What a lane keeps of keyed requests goes once no message that is still to be routed can repeat it, by the
// checkpoint and not by the clock: a router may be behind by any time.
func TestGivenPartsLeave(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	js := r.Registry.JetStream()
	put := func(subject string, data []byte) {
		t.Helper()
		if _, err := js.Publish(t.Context(), subject, data); err != nil {
			t.Fatal(err)
		}
	}
	part := schemas.EncodeGiven([]schemas.GivenPart{{Month: november, Part: schemas.Part{To: 1}, At: 1}})
	for _, lane := range []string{"0", "1", "2"} {
		for range 3 {
			put(schemas.GivenSubject(r.Topic.Name, lane), part)
		}
	}
	routed := func(lane string, stored time.Time) {
		t.Helper()
		cp, err := json.Marshal(checkpoint.Checkpoint{Source: 5, Stored: stored.UnixNano()})
		if err != nil {
			t.Fatal(err)
		}
		msg := nats.NewMsg(schemas.RoutedSubject(r.Topic.Name, lane))
		msg.Data = cp
		msg.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
		if _, err := js.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	routed("0", now)                                         // a message of a moment later is still to come
	routed("1", now.Add(schemas.GivenFor+2*sweepGivenEvery)) // whatever comes is ten minutes younger
	put(schemas.GivenSubject(r.Topic.Name, "1"), part)
	r.retain(now.AddDate(1, 0, 0), "", nil) // however late it is
	subjects, err := streams.Subjects(t.Context(), js, schemas.StreamShards, schemas.SubjectsGiven)
	if err != nil {
		t.Fatal(err)
	}
	for lane, want := range map[string]uint64{"0": 3, "1": 0, "2": 3} {
		if got := subjects[schemas.GivenSubject(r.Topic.Name, lane)]; got != want {
			t.Errorf("lane %s keeps %d messages, want %d", lane, got, want)
		}
	}
}
