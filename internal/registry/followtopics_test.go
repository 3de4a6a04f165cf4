package registry

import (
	"context"
	"sync"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// A part hears of each topic that is declared, changed or taken away.
func TestFollowTopics(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx, cancel := context.WithCancel(timeout(t))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	changed := make(chan struct{}, 1)
	topic := schemas.NewTopic("app")
	if _, _, err := r.Apply(ctx, topic, false); err != nil {
		t.Fatal(err)
	}
	wg.Go(func() { r.FollowTopics(ctx, changed) })
	hear := func(what string) {
		t.Helper()
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s: nothing was heard", what)
		}
	}
	hear("declared before")
	topic.KeepDays = 30
	for _, step := range []struct {
		what   string
		change func() error
	}{
		{"declared", func() error { _, _, err := r.Apply(ctx, schemas.NewTopic("more"), false); return err }},
		{"changed", func() error { _, _, err := r.Apply(ctx, topic, false); return err }},
		{"taken away", func() error { return r.kv.Delete(ctx, schemas.TopicKey("app")) }},
	} {
		t.Run(step.what, func(t *testing.T) {
			if err := step.change(); err != nil {
				t.Fatal(err)
			}
			hear(step.what)
		})
	}
}
