package series

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Reader reads series. It is safe for concurrent use.
type Reader struct {
	reg    *registry.Registry
	db     *tables.DB
	ledger *registry.LedgerCache
	limits limits
	whole  *wholeLists
	lists  *lists
}

// limits bound a read; tests have smaller ones.
type limits struct{ series, rows, points, groups int64 }

// New prepares a reader of series over a reader of events.
func New(r *query.Reader) *Reader {
	return &Reader{reg: r.Registry(), db: r.DB(), ledger: registry.NewLedgerCache(r.Registry()), limits: limits{MaxSeries, MaxRows, MaxPoints, MaxGroups}, whole: &wholeLists{}, lists: &lists{db: r.DB(), now: time.Now}}
}

// topic reads the descriptor of a topic of kind metric.
func (r *Reader) topic(ctx context.Context, name string) (*schemas.Topic, error) {
	t, err := r.reg.TopicOf(ctx, name, kinds.Metric)
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// maxAsks bounds how often a statement is asked while what is derived moves under it.
const maxAsks = 8

// ask begins a snapshot, which run fills, and runs a read, again while the tables move.
func (r *Reader) ask(ctx context.Context, topic string, run func(*snapshot) error) error {
	for try := 1; ; try++ {
		snap, err := r.begin(ctx, topic)
		if err == nil {
			err = run(snap)
		}
		switch {
		case errors.Is(err, once.ErrMoved) && try < maxAsks:
			continue
		case err != nil && !errors.Is(err, schemas.ErrRequest): // such a one names what the caller wrote, who knows the topic
			return fmt.Errorf("series of topic %q: %w", topic, err)
		}
		return err
	}
}

// settings bound a statement's memory to what SQL that people ask has (query.DefaultSQLMemoryBytes), about; sorting and
// grouping go to disk at a quarter of it, so that what a statement has beside them fits. The key of the tables says which
// granules have the rows that are read, nearly all of which count: to read the columns of conditions first takes
// a fifth more CPU. To compress answers costs ClickHouse more than to send them over a network of a data center.
var settings = map[string]string{"enable_http_compression": "0", "max_memory_usage": "2000000000", "max_bytes_before_external_sort": "500000000", "max_bytes_before_external_group_by": "500000000", "optimize_move_to_prewhere": "0"}

// lines runs a statement whose rows are texts.
func (r *Reader) lines(ctx context.Context, sql string, params map[string]string, f func([]string) error) error {
	return once.Lines(ctx, r.db, sql, params, settings, f)
}
