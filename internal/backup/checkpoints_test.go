package backup

import (
	"errors"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// A lane whose last frame has no checkpoint after it is named. A tombstone, and a frame that came alone, need none.
func TestCheckpointsOfACopy(t *testing.T) {
	t.Parallel()
	month, err := schemas.ParseMonth("2026-11")
	if err != nil {
		t.Fatal(err)
	}
	batch := []byte("NATS/1.0\r\n" + headerBatch + ": x\r\n\r\n")
	frame := func(topic string, lane int) message {
		return message{subject: schemas.ShardSubject(topic, month, schemas.NewShard(lane)), header: batch}
	}
	alone := func(topic string, lane int) message {
		m := frame(topic, lane)
		m.header = nil
		return m
	}
	end := func(topic, lane string) message {
		return message{subject: schemas.RoutedSubject(topic, lane), header: batch}
	}
	for name, c := range map[string]struct {
		copied []message
		whole  bool
	}{
		"nothing":                  {nil, true},
		"a batch":                  {[]message{frame("app", 1), frame("app", 1), end("app", "1")}, true},
		"two lanes":                {[]message{frame("app", 0), end("app", "0"), frame("app", 11), end("app", "11"), end("app", "0")}, true},
		"no checkpoint":            {[]message{frame("app", 1)}, false},
		"an older one":             {[]message{frame("app", 1), end("app", "1"), frame("app", 1)}, false},
		"another lane's":           {[]message{frame("app", 1), end("app", "0")}, false},
		"another topic's":          {[]message{frame("app", 1), end("web", "1")}, false},
		"only checkpoints":         {[]message{end("app", "1")}, true},
		"a tombstone":              {[]message{frame("app", 1), end("app", "1"), alone("app", 1)}, true},
		"a dead letter and no end": {[]message{{subject: schemas.DeadSubject("app"), header: batch}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var seen checkpoints
			for i := range c.copied {
				c.copied[i].seq = uint64(i + 1)
				seen.see(&c.copied[i])
			}
			if err := seen.missing(); (err == nil) != c.whole || err != nil && !errors.Is(err, errNoCheckpoint) {
				t.Errorf("%v", err)
			}
		})
	}
}
