// Package series reads topics of kind metric: which series there are, and their points aligned
// to periods and reduced over series. It changes nothing.
//
// # Model
//
// An aligner makes one value of the points that a series has in a window. The window of T is
// (T − period, T]: a point at 12:05:00 belongs to 12:05, one a millisecond later to 12:06. A
// reducer makes one value of the aligned values of a group of series in a window. A group has
// the labels of By in common, and the unit always: values of two units do not add up.
//
//	aligner mean     then reducer mean: the mean of the series' means
//	aligner summary  then reducer mean: the mean of all points
//
// A summary holds count, sum, mean, least, greatest, and the sum of squared deviations from
// the mean (m2). Of summaries, count is how many points there are; of other aligned values it
// is how many series.
//
// Delta and rate are of counters. The increase between two points is in the window of the later
// one. A lower value or another start is a reset: the increase is then the value itself. The
// point before the range is looked for up to Lookback, or a period when that is longer, before
// it. A series' first point has no increase.
//
// Cumulative distributions count as what they grew by, by the same rules. Percentiles of
// distributions are interpolated in their buckets (distributions.go).
//
// Standard deviations are of the population. Percentiles of values are exact, interpolated between the
// two nearest points.
//
// # Which rows
//
// Of points with one series and time the last one that was made counts (package once). A read
// has every row that is stored when it begins. What was accepted and is not stored yet is not
// in it: a caller that needs it waits first (query.Reader.WaitStored). What an erasure under way
// means is not in it either, also where that came later (snapshot.go). There is nothing to
// invalidate: a late or corrected point is in the next read. Final leaves out windows that end
// less than Late ago.
//
// # Who is authoritative
//
// The topic's rows are. <topic>.series lists the series of each shard up to a position, and
// rows above it are listed by the statement itself. So an answer is the same while the list is
// missing or behind.
//
// Where every row is examined and listed, a read is three questions: how far the tables are, which
// series there are (find.go), and their points. The last one looks at the shards alone in which the
// list has the series. Each question takes ClickHouse some milliseconds before it reads a row.
//
// A reader keeps the lists of a few topics (lists.go), and asks only which parts they have: a part
// never changes, so what it has is read once. Filters over what is kept are those of fresh events
// (filter.Evaluator); what only ClickHouse can evaluate, it is asked. So labels of an erased
// person leave memory with the first read after their parts went, or twenty minutes after the last.
//
// # Failures
//
// What the caller got wrong wraps schemas.ErrRequest. A read that is too large is ErrTooMuch,
// with the labels or the period that would do. Nothing is cut silently. Every call ends with its
// context.
package series
