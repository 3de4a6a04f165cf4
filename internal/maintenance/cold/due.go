package cold

import (
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Move is a shard that is not where it belongs.
type Move struct {
	Ref schemas.ShardRef
	To  string // volume
	// Bytes are those that have to move.
	Bytes uint64
}

// Due lists the shards of a topic that have to move, in the order of shards. near is the first volume of its table.
func Due(t *schemas.Topic, shards []registry.Shard, places map[schemas.Shard][]tables.Place, near string, now time.Time) (moves []Move) {
	for i := range shards {
		e := &shards[i]
		if e.Status != registry.Closed || e.NextStep(t, now) != registry.Keep {
			continue
		}
		m := Move{Ref: e.Ref(), To: near}
		if e.Cold(t, now) {
			m.To = schemas.VolumeCold
		}
		astray := func(p tables.Place) bool {
			// Of the operator's further volumes nothing is fetched back.
			return p.Volume != m.To && (m.To == schemas.VolumeCold || p.Volume == schemas.VolumeCold)
		}
		if !slices.ContainsFunc(places[e.ID], astray) {
			continue
		}
		for _, p := range places[e.ID] {
			if astray(p) {
				m.Bytes += p.Bytes
			}
		}
		moves = append(moves, m)
	}
	return moves
}
