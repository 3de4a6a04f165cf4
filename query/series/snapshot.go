package series

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas/sql"
)

// snapshot is how far a topic's tables are, and which rows an erasure under way means.
type snapshot struct {
	*once.Snapshot
	keep   string       // the condition of rows that none means; "1" without one
	noList bool         // the topic's list of series is not there
	within *filter.Expr // the row limit of who asks, over what tells series apart; all without one
	params map[string]string
}

// begin reads the ledger, and then the topic, which has every column that an erasure names. How far its
// tables are is read by Fill.
func (r *Reader) begin(ctx context.Context, topic string) (*snapshot, error) {
	erasures, err := r.ledger.Of(ctx, topic)
	if err != nil {
		return nil, err
	}
	t, err := r.topic(ctx, topic)
	if err != nil {
		return nil, err
	}
	s := &snapshot{}
	if s.within, err = seriesWithin(ctx); err != nil {
		return nil, err
	}
	s.keep, s.params = ledger.Cover(erasures.Only(ledger.Waiting, ledger.Erasing)).Keep()
	s.Snapshot, err = once.Begin(ctx, r.reg, r.db, t)
	return s, err
}

// snapshot reads all of it.
func (r *Reader) snapshot(ctx context.Context, topic string) (*snapshot, error) {
	s, err := r.begin(ctx, topic)
	if err != nil {
		return nil, err
	}
	return s, s.Fill(ctx, r.db)
}

// list reads up to where the topic's series are listed. Reads of the list assert that it
// reaches as far.
func (r *Reader) list(ctx context.Context, s *snapshot) error {
	at, err := derived.Of(r.db).Listed(ctx, s.Topic)
	s.Listed(at)
	s.noList = at == nil && err == nil
	return err
}

// simple reports whether a read may be of the list alone, if that reaches as far as the rows: no
// row is hidden, and none that is read waits to be examined.
func (s *snapshot) simple() bool { return s.Quiet() && !s.erasing() }

// complete reports whether the list has the series of all rows of a simple read.
func (s *snapshot) complete() bool {
	for i := range s.Shards {
		if sh := &s.Shards[i]; !sh.Gone && sh.Series < sh.Stored.Head {
			return false
		}
	}
	return s.simple() && !s.noList
}

// erasing reports whether an erasure is under way.
func (s *snapshot) erasing() bool { return s.keep != "1" }

// kept is the condition of rows that no erasure under way means: neither those from before it,
// nor those that fit it and came since. Columns in it are the table's, whatever the
// statement around it calls so.
func (s *snapshot) kept() string {
	if !s.erasing() {
		return "1"
	}
	return fmt.Sprintf("(month, shard, pos, id) NOT IN (SELECT month, shard, pos, id FROM %s WHERE NOT (%s))", sql.QuotedTable(s.Database, s.Topic.Name), s.keep)
}
