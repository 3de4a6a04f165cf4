package sql

// Statements of query/series. Tables are quoted; a Where and what ends in SQL are conditions and
// expressions of the reader, whose values are parameters; Points, Rows and Listed are statements.

// SeriesPoints selects points of a table: val is the value, and n, s, lo, hi, q and mu what a point
// stands for: how many values, their sum, least, greatest, sum of squared deviations and mean.
type SeriesPoints struct{ Table, Where string }

// SQL is the statement.
func (p SeriesPoints) SQL() string { return fill("series/points", p) }

// SeriesBuckets selects points with their buckets: bk are their ends, rising, and bc how many values
// each has.
type SeriesBuckets struct{ Table, Where string }

// SQL is the statement.
func (p SeriesBuckets) SQL() string { return fill("series/buckets", p) }

// SeriesGrown selects points as SeriesPoints does, with their buckets, and cumulative distributions as
// what they grew by. A series' first point has no growth.
type SeriesGrown struct {
	Points SeriesBuckets
	// CumulativeSQL is the condition of points that count up.
	CumulativeSQL string
}

// SQL is the statement.
func (g SeriesGrown) SQL() string { return fill("series/grown", g) }

// SeriesWindows adds to points the end w of the window that they lie in.
type SeriesWindows struct{ Points, WindowSQL string }

// SQL is the statement.
func (w SeriesWindows) SQL() string { return fill("series/windows", w) }

// SeriesAligned is a value v of each series and window.
type SeriesAligned struct {
	Points SeriesWindows
	// ValueSQL makes the value of a window's points.
	ValueSQL string
	// Refuse is the text of the error that ends a read which meets cumulative distributions; "" lets
	// it go on.
	Refuse string
}

// SQL is the statement.
func (a SeriesAligned) SQL() string { return fill("series/aligned", a) }

// SeriesSummaries is SeriesAligned of whole distributions: an, asum, alo, ahi and aq.
type SeriesSummaries struct {
	Points       SeriesWindows
	DeviationSQL string
	Refuse       string
}

// SQL is the statement.
func (a SeriesSummaries) SQL() string { return fill("series/summaries", a) }

// SeriesIncreases is what counters of each series grew by in a window: of a point of kind Delta its
// value, of others the difference to the point before, or the value after a reset.
type SeriesIncreases struct {
	// Points begin before the range, after which {from:Int64} lies.
	Points               SeriesPoints
	WindowSQL, ValueSQL  string
	Delta, Distributions string // the kind's word; an expression that ends a read with distributions
}

// SQL is the statement.
func (i SeriesIncreases) SQL() string { return fill("series/increases", i) }

// SeriesGrowth is what counters of distributions grew by in a window: how many values.
type SeriesGrowth struct {
	Points              SeriesGrown
	WindowSQL, ValueSQL string
}

// SQL is the statement.
func (g SeriesGrowth) SQL() string { return fill("series/growth", g) }

// SeriesQuantile is a percentile v of the values in buckets of rows, of each group by keys and window.
// It takes values to lie evenly between the ends of their bucket, and none beyond the least and
// greatest.
type SeriesQuantile struct{ Keys, Rows, Level string }

// SQL is the statement.
func (q SeriesQuantile) SQL() string { return fill("series/quantile", q) }

// SeriesPercentile is a percentile v of all points of each group and window.
type SeriesPercentile struct{ Keys, Rows, Level, Distributions string }

// SQL is the statement.
func (p SeriesPercentile) SQL() string { return fill("series/percentile", p) }

// SeriesAnswer is an answer of series, a row each of key and time At.
type SeriesAnswer struct {
	// At is the column of the time, AtSQL what is answered of it, ValuesSQL what else is.
	At, AtSQL, ValuesSQL string
	Rows                 string
	Limit                int64
}

// SQL is the statement.
func (a SeriesAnswer) SQL() string { return fill("series/answer", a) }

// SeriesJoined is aligned rows with the keys of their series' groups.
type SeriesJoined struct {
	// Groups are the names of the keys, KeysSQL their expressions over the listed series.
	Groups, KeysSQL string
	Rows            string
	Listed, Where   string
	// Means adds gm, the mean of a group, from which summaries' deviations are told.
	Means bool
}

// SQL is the statement.
func (j SeriesJoined) SQL() string { return fill("series/joined", j) }

// SeriesGroups is an answer of groups: the key in JSON, the time, and values.
type SeriesGroups struct {
	Groups, TextsSQL, ValuesSQL string
	Rows                        string
	// Reduced: rows are one a group and window already; else ValuesSQL makes one of them.
	Reduced bool
	Limit   int64
}

// SQL is the statement.
func (g SeriesGroups) SQL() string { return fill("series/groups", g) }

// SeriesSamples is the points of series as they are stored. Of rows with one series and time the one
// with the greatest id counts.
type SeriesSamples struct {
	Table string
	// Metrics and Series list what is read; a key tells its metric already, but the table is sorted
	// by type first.
	Metrics, Series string
	FromNs, ToNs    int64
	Where           string
	// CodeSQL tells what a point has in place of a number.
	CodeSQL string
}

// SQL is the statement.
func (s SeriesSamples) SQL() string { return fill("series/samples", s) }
