// Package prometheus reads topics of kind metric by Prometheus's own engine: its language over
// Almanac's series and points. It changes nothing.
//
// # Model
//
// A Store is a storage.Queryable for each topic, with the engine that runs queries over it. A
// series has these labels:
//
//	__name__            the metric
//	service, user_id    the columns, where they are not empty
//	others              the attributes, as kinds.LabelOf names them
//
// The unit is not a label: series that differ by it alone are one here. Times count in
// milliseconds; of two points in one millisecond the later one counts. Of points with one
// series and time the last one that was made counts. Staleness markers, NaN and infinities are
// what the sender wrote. Points of kind delta are values as others are. Points that stand for
// distributions are not samples: an answer that passes over some says so in a warning.
//
// # Which points
//
// All that is stored when a selector is read. Exec waits a short time until what the topic
// accepted before can be read, and says in a warning how much cannot. It is complete as far as
// that, or an error.
//
// # Who is authoritative
//
// The topic's rows, read by package series. The engine decides what counters, staleness and
// lookback mean.
//
// # Failures
//
// An expression is refused before anything is read where its subqueries, ranges or functions would have the engine
// allocate, or work, without an end (package expr): it counts samples only after it has allocated for them.
//
// What the caller got wrong, and reads that are too large, wrap schemas.ErrRequest. All queries
// of a process share MaxPoints; a query that finds no room for its points is refused, with what
// would do. Every call ends with its context.
package prometheus
