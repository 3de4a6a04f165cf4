package kinds

// Columns of kind metric. The base column type is the name of the metric, attributes are the
// labels, user_id is the tenant.
const (
	ColValue  = "value"
	ColUnit   = "unit"
	ColPoints = "points" // of which kind the points are: PointsGauge …
	ColStart  = "start"  // since when a cumulative point counts; a new start is a reset
	// Of a distribution: what a point stands for in place of value.
	ColCount   = "count"
	ColSum     = "sum"
	ColMin     = "min"
	ColMax     = "max"
	ColM2      = "m2"      // sum of squared deviations from the mean
	ColBuckets = "buckets" // JSON: {"bounds": [b1, b2 …], "counts": [up to b1, up to b2 … above]}

	// ColSeries is computed of what tells series apart; only tables of the kind have it.
	ColSeries = "series"
)

// The kinds of points. Empty means that it is not known; such points are read as gauges by
// most aligners, and as cumulative by those of counters.
const (
	PointsGauge      = "gauge"
	PointsDelta      = "delta"
	PointsCumulative = "cumulative"
	// PointsStale ends a series until its next point, as Prometheus's staleness marker does.
	// The others stand for samples that are not finite. All four have the value 0 and count
	// for no aligner.
	PointsStale  = "stale"
	PointsNaN    = "nan"
	PointsInf    = "+inf"
	PointsNegInf = "-inf"
)

// Numbers lists the kinds of points that have a number.
var Numbers = []string{"", PointsGauge, PointsDelta, PointsCumulative}

// MaxExact bounds whole numbers that a float64 has exactly.
const MaxExact = 1 << 53

// SeriesOf are the columns that tell series apart.
var SeriesOf = []string{ColType, ColService, ColUserID, ColUnit, ColAttributes}

// metrics are points of time series. Of points of one series and one instant the last one
// that was made counts.
var metrics = Spec{
	Kind: Metric, Short: "points of time series, one for each series and instant",
	Fields: []Field{
		{Name: ColValue, Type: TypeFloat64},
		{Name: ColUnit, Type: TypeLowCardinality},
		{Name: ColPoints, Type: TypeLowCardinality},
		{Name: ColStart, Type: TypeTimestamp},
		{Name: ColCount, Type: TypeInt64},
		{Name: ColSum, Type: TypeFloat64},
		{Name: ColMin, Type: TypeFloat64},
		{Name: ColMax, Type: TypeFloat64},
		{Name: ColM2, Type: TypeFloat64},
		{Name: ColBuckets, Type: TypeJSON},
	},
	Codecs: map[string]string{ColValue: "Gorilla, ZSTD(1)", ColBuckets: "ZSTD(3)"},
	Rules: []Rule{
		{Column: ColType, Present: true, NotEmpty: true},
		{Column: ColValue, Present: true, Or: ColCount, Finite: true, Exact: true},
		{Column: ColPoints, OneOf: append(Numbers[:4:4], PointsStale, PointsNaN, PointsInf, PointsNegInf)},
		{Column: ColStart, NotAfter: ColTs},
		{Column: ColCount, Lo: 0, Hi: MaxExact},
		{Column: ColSum, Finite: true, Exact: true},
		{Column: ColMin, Finite: true, Exact: true},
		{Column: ColMax, Finite: true, Exact: true, NotBelow: ColMin},
		{Column: ColM2, Finite: true, Exact: true, NotNegative: true},
		{Column: ColBuckets, BucketsOf: ColCount},
	},
	Sorted:        true,
	LaneBy:        SeriesOf,
	Rotate:        defaultRotation,
	Once:          append(SeriesOf[:5:5], ColTs),
	Wins:          Last,
	NoOtherFields: true,
	FoundBy:       []string{ColType, ColSeries, ColTs},
	Table:         "metric.sql",
	Sort:          []string{ColType, ColSeries, ColTs, ColID},
}
