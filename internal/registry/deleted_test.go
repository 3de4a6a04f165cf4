package registry

import (
	"errors"
	"testing"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A key that was deleted in both copies can be written again: its last revision is that of the
// deletion.
func TestDeletedKeysAreWrittenAgain(t *testing.T) {
	t.Parallel()
	r, ctx, s := placed(t, 0)
	topic := schemas.NewTopic("app")
	for round := range 2 {
		if _, _, err := r.Apply(ctx, topic, false); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for _, key := range []string{schemas.TopicKey("app"), schemas.HeadKey("app", november)} {
			if err := r.kv.Purge(ctx, key); err != nil {
				t.Fatal(err)
			}
			if err := streams.Purge(ctx, r.js, schemas.CopiesStream, schemas.CopySubject(key), streams.Refuse); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Head(ctx, "app", november); !errors.Is(err, ErrNotFound) {
			t.Fatalf("a deleted head: %v", err)
		}
		again, err := r.Place(ctx, &topic, november, 0, Point{}, noon)
		if err != nil || again.ID == s.ID {
			t.Fatalf("round %d: placed in %s, %v", round, again.Name(), err)
		}
	}
}
