package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// A letter that was on its way out when SHARDS lost its end is gone with it. What has its
// sequence since is another message: a frame, a checkpoint or another letter. It stays.
func TestOpenLetterWhoseSequenceWasGivenAgain(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.router()
	e.say(e.producer("app"), 3)
	e.routed("app", 3)
	e.publish("events.app.2026-02.0", `{"ts":"2026-03-01T00:00:00Z","message":"of another month"}`)
	e.publish("events.app.2026-02.0", `{"ts":"2026-03-01T00:00:00Z","message":"of another month"}`)
	var dead []registry.OpenLetter
	eventually(t, 30*time.Second, func() error {
		dead = nil
		for _, m := range e.messages(schemas.StreamShards, schemas.DeadSubject("app")) {
			dead = append(dead, registry.OpenLetter{Seq: m.Sequence, At: m.Time.UnixNano(), Events: 1})
		}
		if len(dead) != 2 {
			return fmt.Errorf("%d dead letters, want 2", len(dead))
		}
		return nil
	})
	frames := e.messages(schemas.StreamShards, schemas.ShardsFilter("app"))
	letters, err := e.reg.Letters(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	other := dead[1]
	other.At-- // it was stored at another time: another letter
	if _, err := e.reg.OpenLetters(t.Context(), letters, []registry.OpenLetter{
		{Seq: frames[0].Sequence, At: 1, Events: 1}, {Seq: frames[1].Sequence, Events: 1}, dead[0], other,
	}); err != nil {
		t.Fatal(err)
	}
	e.resolve(deadletters.Request{Topic: "app", Reason: "none of this", Drop: true})
	if n := len(e.messages(schemas.StreamShards, schemas.ShardsFilter("app"))); n != len(frames) {
		t.Errorf("%d frames are left of %d", n, len(frames))
	}
	if left := e.messages(schemas.StreamShards, schemas.DeadSubject("app")); len(left) != 1 || left[0].Sequence != other.Seq {
		t.Errorf("%d letters are left, want the one that was not open", len(left))
	}
}
