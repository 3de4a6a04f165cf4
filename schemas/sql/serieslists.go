package sql

// SeriesListed selects series, a row each: what the list has, and what stands in rows above it.
type SeriesListed struct {
	// Unlisted selects the series of rows, as rows of the list; "" without such rows.
	Unlisted string
	// List is the table of the list, "" where it is not read. Where is of its rows.
	List, Where string
}

// SQL is the statement.
func (l SeriesListed) SQL() string { return fill("series/listed", l) }

// SeriesListedAlone selects what SeriesListed does, of the list alone, with the shards of each series.
// Its row without a type has up to where the list reaches.
type SeriesListedAlone struct {
	List, Where string
	// Places is how many shards of a series are told; 0: none are.
	Places int
	// SinceSQL, when set, is the begin of the range: rows of the list are read from before it, for the shards
	// of the points there. The series are still those of the range, and what is told of them.
	SinceSQL string
}

// SQL is the statement.
func (l SeriesListedAlone) SQL() string { return fill("series/listed_alone", l) }

// SeriesFound is what a read would touch, in one row.
type SeriesFound struct {
	// Where selects series, of those alone that Within does.
	Listed, Within, Where string
	// KeysSQL are what series are grouped by.
	KeysSQL string
	// Labels, Names and Places bound what is told of each.
	Labels, Names, Places int
	// Placed: the listed series have their places, and up to where they are listed.
	Placed bool
}

// SQL is the statement.
func (f SeriesFound) SQL() string { return fill("series/found", f) }

// SeriesList is the listed series, as people read them.
type SeriesList struct {
	Listed, Where string
	// Keyed gives the keys too, in no order.
	Keyed bool
	Limit int64
}

// SQL is the statement.
func (l SeriesList) SQL() string { return fill("series/list", l) }

// SeriesNames is the keys, fields and labels of the listed series.
type SeriesNames struct{ Listed, Where string }

// SQL is the statement.
func (n SeriesNames) SQL() string { return fill("series/names", n) }

// SeriesCounts counts the listed series by a name, the most first.
type SeriesCounts struct {
	Listed, Where string
	// NameSQL is what they are counted by. "" counts by the names of their labels, and the values of each.
	NameSQL string
	Limit   int
}

// SQL is the statement.
func (c SeriesCounts) SQL() string { return fill("series/counts", c) }

// SeriesNarrower is labels of which each value has at most Series of the listed series, the closest first.
type SeriesNarrower struct {
	Listed, Where string
	// Pairs: of two labels together.
	Pairs  bool
	Series float64
	Limit  int
}

// SQL is the statement.
func (n SeriesNarrower) SQL() string { return fill("series/narrower", n) }

// SeriesEstimate is about how many rows a read of points reads, as ClickHouse's index says.
type SeriesEstimate struct{ Table, Name, Where string }

// SQL is the statement.
func (e SeriesEstimate) SQL() string { return fill("series/estimate", e) }
