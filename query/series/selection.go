package series

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// selection is what series a read is about, over one snapshot.
type selection struct {
	snap     *snapshot
	metric   string // empty: all
	from, to time.Time
	where    *filter.Expr // with the row limit
	asked    []string     // the labels that the request's own filter names
	params   map[string]string
	// distributions says that points are read by their buckets, and cumulative ones by what they
	// grew by.
	distributions bool
	keys          []string                  // of the selected series, once they are known and few
	places        map[schemas.ShardRef]bool // the shards with their points that are read, up to the snapshot; nil: any
}

// filterTopic has the columns that tell series apart, for filters over them.
var filterTopic = func() *schemas.Topic {
	t := schemas.NewTopic("series", schemas.Field{Name: kinds.ColUnit, Type: schemas.TypeLowCardinality})
	return &t
}()

// selectSeries reads the filter of a read.
func selectSeries(snap *snapshot, metric, where string, from, to time.Time) (*selection, error) {
	e, err := filter.Parse(where, filterTopic)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	if c := ofPoints(e); c != "" {
		return nil, bad("--where selects series, by %s; %s is of points", strings.Join(seriesFields, ", "), c)
	}
	s := &selection{snap: snap, metric: metric, where: filter.And(snap.within, e), from: from, to: to}
	_, s.asked = e.Uses()
	_, s.params = s.where.SQL()
	maps.Copy(s.params, snap.params)
	s.params["from"], s.params["to"] = strconv.FormatInt(from.UnixNano(), 10), strconv.FormatInt(to.UnixNano(), 10)
	if metric != "" {
		s.params["metric"] = filter.ParamString(metric)
	}
	return s, nil
}

// ofPoints is a column that a filter compares and that does not tell series apart; empty: there is none.
func ofPoints(e *filter.Expr) string {
	columns, _ := e.Uses()
	for _, c := range columns {
		if !slices.Contains(kinds.SeriesOf, c) {
			return c
		}
	}
	return ""
}

// seriesWithin is the row limit of a context. One over what series do not have cannot be applied to them.
func seriesWithin(ctx context.Context) (*filter.Expr, error) {
	where := filter.LimitOf(ctx)
	if where == "" {
		return &filter.Expr{}, nil
	}
	e, err := filter.ParseLimit(where, filterTopic)
	if err == nil && ofPoints(e) != "" {
		err = fmt.Errorf("%w: a topic of kind %s is limited by %s", filter.ErrLimit, kinds.Metric, strings.Join(seriesFields, ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	return e, nil
}

// seriesFields are what series are selected and grouped by beside their labels.
var seriesFields = []string{schemas.ColType, schemas.ColService, schemas.ColUserID, kinds.ColUnit, "labels (attributes.name)"}

func (s *selection) named() string {
	if s.metric == "" {
		return "type != ''"
	}
	return "type = {metric:String}"
}

// condition is the filter over columns of listed.
func (s *selection) condition() string {
	where, _ := s.where.SQL()
	return where
}

// within is the row limit over columns of listed. Its parameters are the first of those of the whole filter, which begins with it.
func (s *selection) within() string {
	within, _ := s.snap.within.SQL()
	return within
}

const (
	sqlBefore = "fromUnixTimestamp64Nano({before:Int64}, 'UTC')"
	sqlFrom   = "fromUnixTimestamp64Nano({from:Int64}, 'UTC')"
	sqlTo     = "fromUnixTimestamp64Nano({to:Int64}, 'UTC')"
)

// listed selects the series of the metric that may have points in the range, a row each: what
// the topic's list has, and what stands in rows above it. Rows that came since the snapshot are
// left out with their points, where the list has all that was stored then. While an erasure is under way it is of
// rows alone: the list has series of rows that are hidden. The filter is not applied.
func (s *selection) listed() string {
	var l sql.SeriesListed
	if !s.snap.complete() {
		unlisted := s.snap.New(func(sh *once.Shard) uint64 { return sh.Series })
		if s.snap.erasing() {
			unlisted = s.snap.kept()
		}
		fresh := fmt.Sprintf("%s AND ts > %s AND ts <= %s AND %s AND (%s)", s.named(), sqlFrom, sqlTo, s.snap.Held(once.Nowhere), unlisted)
		l.Unlisted = sql.SeriesSelect(s.snap.Topic, s.snap.Database, fresh)
	}
	if !s.snap.Absent && !s.snap.noList && !s.snap.erasing() {
		l.List, l.Where = s.list(), fmt.Sprintf("%s AND %s AND %s", s.named(), s.listedRange(s.from), s.unmoved())
	}
	return l.SQL()
}

// listedRange is the condition of rows of the list that may have points after an instant, up to the range's end.
func (s *selection) listedRange(from time.Time) string {
	return fmt.Sprintf("last > fromUnixTimestamp64Nano(toInt64(%d), 'UTC') AND first <= %s AND %s", from.UnixNano(), sqlTo, s.snap.Held(once.Nowhere))
}

func (s *selection) list() string {
	return sql.QuotedTable(s.snap.Database, schemas.DerivedTable(s.snap.Topic.Name, schemas.DerivedSeries))
}

// unmoved is a condition that holds while the list reaches as far as the snapshot found it.
func (s *selection) unmoved() string {
	var reach []string
	for i := range s.snap.Shards {
		if sh := &s.snap.Shards[i]; !sh.Gone && sh.Series > 0 {
			reach = append(reach, fmt.Sprintf("(%s AND p >= %d)", once.In(sh.Ref), sh.Series))
		}
	}
	if len(reach) == 0 {
		return "1"
	}
	return fmt.Sprintf("throwIf((SELECT count() FROM (SELECT month, shard, max(pos) AS p FROM %s WHERE type = '' GROUP BY month, shard) WHERE %s) != %d, '%s') = 0",
		s.list(), strings.Join(reach, " OR "), len(reach), once.TextMoved)
}

// points is the condition of the topic's rows that are points of the selected series and count.
func (s *selection) points(from string) string {
	cut := s.snap.Quiet()
	held := s.snap.Held(once.Examined)
	if cut && s.places != nil {
		held = s.snap.HeldIn(s.places)
	}
	cond := []string{s.named(), "ts > " + from, "ts <= " + sqlTo, "points IN (" + quotedNumbers + ")", held, s.snap.Unmoved(cut), s.snap.kept()}
	if again := s.snap.Again(); again != "false" {
		cond = append(cond, "NOT ("+again+")")
	}
	if chosen := s.chosen(); chosen != "" {
		cond = append(cond, chosen)
	}
	return strings.Join(cond, " AND ")
}

// chosen is the condition of rows of the series that the filter selects, "" where it selects
// all.
func (s *selection) chosen() string {
	switch {
	case s.keys != nil:
		return "series IN {keys:Array(UInt128)}"
	case s.where.All():
		return ""
	}
	return "series IN (SELECT series FROM (" + s.listed() + ") WHERE " + s.condition() + ")"
}

var quotedNumbers = func() string {
	quoted := make([]string, len(kinds.Numbers))
	for i, n := range kinds.Numbers {
		quoted[i] = sql.QuoteText(n)
	}
	return strings.Join(quoted, ", ")
}()

// labelSQL is what a label is called in listed.
func labelSQL(label string, params map[string]string) string {
	if slices.Contains([]string{schemas.ColService, schemas.ColUserID, kinds.ColUnit}, label) {
		return sql.QuoteName(label)
	}
	name := fmt.Sprintf("by%d", len(params))
	params[name] = filter.ParamString(label)
	return "attributes[{" + name + ":String}]"
}
