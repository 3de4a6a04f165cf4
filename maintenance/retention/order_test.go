package retention

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// The shards of a lane of documents go in the order in which they were filled.
func TestWaits(t *testing.T) {
	t.Parallel()
	docs, logs := schemas.NewTopicOf(kinds.Document, "notes"), schemas.NewTopic("app")
	june, july := schemas.Month(202606), schemas.Month(202607)
	at := func(hours int) time.Time { return time.Unix(0, june.Start()).Add(time.Duration(hours) * time.Hour) }
	one := registry.Shard{ID: 1, Month: july, Lane: 1, Status: registry.Closed, CreatedAt: at(5)}
	for name, c := range map[string]struct {
		topic schemas.Topic
		e, o  registry.Shard
		want  bool
	}{
		"an older one of the month":    {docs, one, registry.Shard{ID: 2, Month: july, Lane: 1, Status: registry.Closed, CreatedAt: at(4)}, true},
		"a newer one":                  {docs, one, registry.Shard{ID: 2, Month: july, Lane: 1, Status: registry.Active, CreatedAt: at(6)}, false},
		"one of the month before":      {docs, one, registry.Shard{ID: 2, Month: june, Lane: 1, Status: registry.Active, CreatedAt: at(6)}, true},
		"another lane's":               {docs, one, registry.Shard{ID: 2, Month: june, Lane: 2, Status: registry.Closed, CreatedAt: at(4)}, false},
		"it is being dropped":          {docs, one, registry.Shard{ID: 2, Month: june, Lane: 1, Status: registry.Dropping, CreatedAt: at(4)}, false},
		"this one is already":          {docs, registry.Shard{ID: 1, Month: july, Lane: 1, Status: registry.Dropping, CreatedAt: at(5)}, registry.Shard{ID: 2, Month: june, Lane: 1, Status: registry.Closed, CreatedAt: at(4)}, false},
		"events do not have versions":  {logs, one, registry.Shard{ID: 2, Month: june, Lane: 1, Status: registry.Closed, CreatedAt: at(4)}, false},
		"made at once, another's turn": {docs, one, registry.Shard{ID: 2, Month: july, Lane: 1, Status: registry.Closed, CreatedAt: at(5)}, false},
	} {
		if got := len(before(&c.topic, &c.e, []registry.Shard{c.e, c.o})) > 0; got != c.want {
			t.Errorf("%s: it waits: %t, expected %t", name, got, c.want)
		}
	}
}
