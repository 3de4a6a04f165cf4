package operations

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/query"
)

var (
	prefix      = Param{Name: "prefix", Help: "`TEXT` with which they begin"}
	countCursor = helped(cursor, "only what the pages by a `CURSOR` have: with the back of a page of the newest first, how many are newer")
	completions = counts(atMost("how many", query.MaxCompletions), query.DefaultCompletions)
)

// What counts events: in all, by time, and by the values of fields.
var (
	Count = Operation{
		Tool: "count", Method: http.MethodGet, Path: "/v1/topics/{topic}/count", Summary: "How many events", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Params: []Param{inTopic, from, to, where, countCursor}, Answers: ok("Count"),
	}
	SearchCount = Operation{
		Tool: "count_topics", Method: http.MethodGet, Path: "/v1/events/count", Summary: "How many events several topics have", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Params: []Param{someTopics, from, to, where, countCursor}, Answers: ok("SearchCount"),
	}
	Histogram = Operation{
		Tool: "histogram", Method: http.MethodGet, Path: "/v1/topics/{topic}/histogram", Summary: "How many events in each step of time", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Params: []Param{
			inTopic, from, to, where,
			{Name: "by", Help: "split by `COLUMN` (level, service, type or a promoted lowcardinality field)"},
			{Name: "step", Help: "`LENGTH` of a bucket, such as 1m, 7d or 1mo"},
			{Name: "buckets", Kind: Number, Least: 2, Most: query.MaxBuckets, Help: fmt.Sprintf("in place of step: the shortest round step by which the range has so many at the most, 2 to %d", query.MaxBuckets)},
			{Name: "zone", Help: "the time `ZONE` in which days, weeks and months begin, such as Europe/Vienna (default UTC)"},
		},
		Answers: ok("Histogram"),
	}
	Facets = Operation{
		Tool: "facets", Method: http.MethodGet, Path: "/v1/topics/{topic}/facets", Summary: "The most frequent values of fields", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Params: []Param{
			inTopic, from, to, where,
			{Name: "fields", Kind: Names, Help: "`NAMES` of fields, with commas between"},
			{Name: "n", Flag: "values", Default: strconv.Itoa(query.DefaultFacetValues), Kind: Number, Least: 1, Most: query.MaxFacetValues, Help: fmt.Sprintf("how many values of each field, 1 to %d", query.MaxFacetValues)},
			{Name: "shards", Default: strconv.Itoa(query.MaxPageShards), Kind: Number, Least: 1, Most: query.MaxFacetShards, Help: fmt.Sprintf("how many of the newest shards are read, 1 to %d", query.MaxFacetShards)},
		},
		Answers: ok("Facets"),
	}
	Fields = Operation{
		Tool: "fields", Method: http.MethodGet, Path: "/v1/topics/{topic}/fields", Summary: "Names of fields", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Params: []Param{inTopic, from, to, prefix, completions}, Answers: ok("Fields"),
	}
	Values = Operation{
		Tool: "values", Method: http.MethodGet, Path: "/v1/topics/{topic}/values", Summary: "Values of a field", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Params:  []Param{inTopic, from, to, prefix, completions, {Name: "field", Help: "the `FIELD` whose values are wanted"}},
		Answers: ok("Values"),
	}
)
