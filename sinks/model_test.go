package sinks

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/integration/model"
	"github.com/almanac-events/almanac/schemas"
)

// The model takes a frame for the next one exactly when a sink does.
func TestModelChecksPositionsAsSinksDo(t *testing.T) {
	payloads := []string{"first of all frames", "second of the frames", "third of the frames."}
	rapid.Check(t, func(rt *rapid.T) {
		payload := rapid.SampledFrom(payloads)
		pos := rapid.Uint64Range(1, 5)
		head := pos.Draw(rt, "head")
		b := &batch{}
		if rapid.Bool().Draw(rt, "digest of the head is known") {
			b.digest = schemas.Digest([]byte(payload.Draw(rt, "at the head")))
		}
		for range rapid.IntRange(1, 4).Draw(rt, "frames") {
			n, prev := len(b.frames), b.digest
			p := schemas.Placed{Pos: pos.Draw(rt, "pos"), Prev: schemas.Digest([]byte(payload.Draw(rt, "prev")))}
			_, err := b.admit(head, p, []byte(payload.Draw(rt, "payload")), 1)
			if got := model.Follows(head, n, prev, p); (got == nil) != (err == nil) {
				rt.Fatalf("the model says %v, the sink %v", got, err)
			}
			if err != nil {
				return
			}
		}
	})
}
