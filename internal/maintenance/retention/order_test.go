package retention

import (
	"testing"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// The shards of a lane of documents go in the order in which they were filled.
func TestWaits(t *testing.T) {
	t.Parallel()
	docs, logs := schemas.NewTopicOf(kinds.Document, "notes"), schemas.NewTopic("app")
	june, july := schemas.Month(202606), schemas.Month(202607)
	shard := func(id schemas.Shard, m schemas.Month, status registry.Status, made, ended registry.Point) registry.Shard {
		return registry.Shard{ID: 1<<56 | id, Month: m, Status: status, Order: registry.Order{Point: made}, Ended: ended}
	}
	at := func(seq uint64) registry.Point { return registry.Point{Seq: seq} }
	one := shard(1, july, registry.Closed, at(50), at(80))
	turned := shard(2, july, registry.Closed, at(40), at(45))
	turned.Order.Turn = 1
	elsewhere := shard(2, june, registry.Closed, at(40), at(45))
	elsewhere.ID = 2<<56 | 2
	for name, c := range map[string]struct {
		topic schemas.Topic
		e, o  registry.Shard
		want  bool
	}{
		"an older one of the month":                   {docs, one, shard(2, july, registry.Closed, at(40), at(50)), true},
		"a newer one":                                 {docs, one, shard(2, july, registry.Active, at(80), at(0)), false},
		"one that a lane that was set back made":      {docs, one, turned, false},
		"of the month before, begun before it ended":  {docs, one, shard(2, june, registry.Active, at(60), at(0)), true},
		"of the month before, begun after it ended":   {docs, one, shard(2, june, registry.Active, at(80), at(0)), false},
		"of the month before, in the next era":        {docs, one, shard(2, june, registry.Active, registry.Point{Era: 1, Seq: 20}, at(0)), false},
		"of the month before, its own end is unknown": {docs, shard(1, july, registry.Closed, at(50), at(0)), shard(2, june, registry.Active, at(90), at(0)), true},
		"another lane's":                              {docs, one, elsewhere, false},
		"it is being dropped":                         {docs, one, shard(2, june, registry.Dropping, at(40), at(45)), false},
		"this one is already":                         {docs, shard(1, july, registry.Dropping, at(50), at(80)), shard(2, june, registry.Closed, at(40), at(45)), false},
		"events do not have versions":                 {logs, one, shard(2, june, registry.Closed, at(40), at(45)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := waits(&c.topic, &c.e, []registry.Shard{c.e, c.o}); got != c.want {
				t.Errorf("%s: it waits: %t, expected %t", name, got, c.want)
			}
		})
	}
}
