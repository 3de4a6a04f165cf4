package derived

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// BrokenSeries lists the shards of a topic whose list of series is not what its fills made it: it
// has fewer series than the last one counted, or series of a fill that it does not name. A part or
// rows of the table were deleted. It reads the keys of the whole list.
func (db Tables) BrokenSeries(ctx context.Context, t *schemas.Topic) (broken []schemas.ShardRef, err error) {
	listed := sql.QuotedTable(db.Database, schemas.DerivedTable(t.Name, schemas.DerivedSeries))
	err = db.EachShard(ctx, t.Name, fmt.Sprintf("SELECT month, shard FROM %s GROUP BY month, shard"+
		" HAVING max(pos) != maxIf(pos, type = '') OR uniqExactIf((type, series), type != '') < maxIf(listed, type = '')", listed),
		func(ref schemas.ShardRef, _ []uint64) { broken = append(broken, ref) }, 0)
	if errors.Is(err, tables.ErrNoTable) {
		return nil, nil
	}
	return broken, err
}
