package query

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/almanac-events/almanac/internal/query/recent"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas/sql"
)

// notice says what a filter that no index covers has to scan; "" where one does,
// or where there is no filter. How much that is, is not said to who may read some rows alone.
func (w *walk) notice(ctx context.Context) (string, error) {
	indexes := sql.Indexes(&w.p.topic)
	if w.p.asked.All() || len(w.p.where.Indexes(indexes)) > 0 || filter.LimitOf(ctx) != "" {
		return "", nil
	}
	if err := w.load(ctx, math.MaxInt); err != nil {
		return "", err
	}
	var rows, bytes float64
	for i := range w.queue {
		part := share(&w.queue[i], w.p.lower(), w.p.upper())
		rows += part * float64(w.queue[i].Rows)
		bytes += part * float64(w.queue[i].Bytes)
	}
	if len(w.queue) == 0 || rows < 1 {
		return "", nil
	}
	names := make([]string, len(indexes))
	for i, index := range indexes {
		names[i] = index.Column
	}
	return fmt.Sprintf("no index covers this filter; it may scan about %d rows (%s) in %d shards. Indexed are %s. Narrow the range of time",
		uint64(rows), size(bytes), len(w.queue), strings.Join(names, ", ")), nil
}

// share is how much of the shard's range of time lies between lo and hi.
func share(s *recent.Shard, lo, hi int64) float64 {
	span := float64(s.MaxTs) - float64(s.MinTs) + 1
	return min(1, (float64(min(hi, s.MaxTs))-float64(max(lo, s.MinTs))+1)/span)
}

// size is bytes in words.
func size(bytes float64) string {
	unit := 0
	for ; bytes >= 1024 && unit < 4; unit++ {
		bytes /= 1024
	}
	return fmt.Sprintf("%.3g %s compressed", bytes, [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[unit])
}
