package integration

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// An erasure whose names came back with a backup is redacted again only where no stream has events of it, wherever these
// stand: SHARDS has frames in order of one lane alone, and a message that cannot be read hides nothing.
func TestRedactAgainFindsWhatIsLeft(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	e := start(t, topic)
	for range 3 {
		e.publish("events.another.2026-02.0", `{"message":"so that the fence is above these"}`)
	}
	job := e.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}})
	if job.Fence < 1 {
		t.Fatalf("the fence is %d", job.Fence)
	}
	feb, err := schemas.ParseMonth("2026-02")
	if err != nil {
		t.Fatal(err)
	}
	place := func(shard schemas.Shard, pos uint64, from schemas.Source, user string) {
		f, payload := frameOf(t, topic, producer.Event{Time: time.Unix(0, feb.Start()), UserID: user, Message: "secret of " + user})
		f.Producer, f.Seq = "p", pos
		p := schemas.Placed{Frame: f, Pos: pos, SourceSeq: from.Seq, SourceTime: from.Stored, ShardRows: pos}
		e.place(t, schemas.ShardSubject("app", feb, shard), p, payload)
	}
	// In the order of SHARDS: a frame from above the fence of one lane, a message of another that cannot be read, and the
	// frame that the erasure means.
	place(1, 1, schemas.Source{Seq: job.Fence + 1, Stored: job.FenceTime + 1}, "u-1")
	unreadable := nats.NewMsg(schemas.ShardSubject("app", feb, 2))
	unreadable.Header.Set(schemas.HeaderPos, "?")
	if _, err := e.js().PublishMsg(t.Context(), unreadable); err != nil {
		t.Fatal(err)
	}
	place(2, 1, schemas.Source{Seq: 1, Stored: job.FenceTime - 1}, "u-7")
	x := e.eraser()
	if err := x.RedactAgain(t.Context(), "app", job.ID); !errors.Is(err, erasure.ErrStillThere) {
		t.Errorf("a frame has an event of the erasure, and redacting it again says %v", err)
	}
	redacted := func() bool {
		now, err := e.reg.Erasure(t.Context(), "app", job.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now.State == ledger.Erased && now.Redacted
	}
	if redacted() {
		t.Error("it is redacted all the same")
	}
	shards, err := e.js().Stream(t.Context(), schemas.StreamShards)
	if err != nil {
		t.Fatal(err)
	}
	last, err := shards.GetLastMsgForSubject(t.Context(), schemas.ShardSubject("app", feb, 2))
	if err == nil {
		err = shards.DeleteMsg(t.Context(), last.Sequence)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := x.RedactAgain(t.Context(), "app", job.ID); err != nil || !redacted() {
		t.Errorf("no frame has an event of the erasure, and redacting it again says %v; redacted: %v", err, redacted())
	}
}
