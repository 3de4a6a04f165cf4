package fronts

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// A front that is restored from an older copy, where SHARDS lost the checkpoints that would tell, is known by their copies.
func TestCheckCopies(t *testing.T) {
	t.Parallel()
	w, js := open(t, Config{})
	ctx := timeout(t)
	for _, id := range []string{"a", "b", "c"} {
		if _, err := w.Put(ctx, record(id, 0)); err != nil {
			t.Fatal(err)
		}
	}
	last, err := w.Last(ctx, record("c", 0).Subject)
	if err != nil {
		t.Fatal(err)
	}
	customers := schemas.NewTopicOf(kinds.Document, "customers")
	check := func(copied checkpoint.Checkpoint, lane string) error {
		return CheckCopies(ctx, js, schemas.StreamDocs, []schemas.Topic{customers, schemas.NewTopicOf(schemas.KindLog, "app")},
			func(context.Context, string) (map[string]checkpoint.Checkpoint, error) {
				return map[string]checkpoint.Checkpoint{lane: copied}, nil
			})
	}
	has := checkpoint.Checkpoint{Front: schemas.StreamDocs, Source: last.Sequence, Stored: last.Time.UnixNano()}
	lacks := checkpoint.Checkpoint{Front: schemas.StreamDocs, Source: last.Sequence + 7, Stored: last.Time.UnixNano()}
	if err := check(has, "0"); err != nil {
		t.Errorf("it has what the copy saw: %v", err)
	}
	if err := check(lacks, "0"); !errors.Is(err, ErrLost) {
		t.Errorf("it lacks what the copy saw: %v", err)
	}
	if err := check(lacks, "999"); err != nil {
		t.Errorf("a copy of a lane that the topic does not have: %v", err)
	}
	msg := nats.NewMsg(schemas.RoutedSubject("customers", "0"))
	if msg.Data, err = json.Marshal(&lacks); err != nil {
		t.Fatal(err)
	}
	msg.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
	if _, err := js.PublishMsg(ctx, msg); err != nil {
		t.Fatal(err)
	}
	if err := check(lacks, "0"); err != nil { // CheckWhole names it
		t.Errorf("the checkpoint is as new as the copy: %v", err)
	}
}
