package operations

import (
	"net/http"
	"slices"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/query/series"
	"github.com/almanac-events/almanac/query/trail"
	"github.com/almanac-events/almanac/query/usage"
)

// What a bill is made of.
var (
	ofMeter    = Param{Name: "meter", Help: "bill only this `METER`"}
	ofProvider = Param{Name: "provider", Help: "bill only this `PROVIDER`"}
	ofSpace    = Param{Name: "space", Help: "bill only this `SPACE`"}
	ofCustomer = Param{Name: "customer", Help: "bill only this `CUSTOMER`"}
	measure    = Param{Name: "measure", Kind: Word, Default: string(usage.Integral), Words: texts(usage.Measures), Help: "integral, sum or count"}
)

// Reads of topics of one kind.
var (
	Series = Operation{
		Tool: "series", Method: http.MethodGet, Path: "/v1/topics/{topic}/series", Summary: "Series of a topic of kind metric", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Params: []Param{
			inTopic,
			{Name: "metric", Help: "only series of this `NAME`"}, seriesOf,
			helped(from, "only series with points from `TIME` on"), helped(to, "only series with points before `TIME`"), counts(atMost("how many at most", series.MaxList), series.DefaultList), waits,
		},
		Answers: ok("SeriesList"),
	}
	Align = Operation{
		Tool: "align", Method: http.MethodGet, Path: "/v1/topics/{topic}/align", Summary: "Aligned and reduced points of a metric", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Params: []Param{
			inTopic,
			{Name: "metric", Kind: Texts, Required: true, Help: "`NAME` of the metric; given several times, each of them"}, seriesOf, required(from), helped(to, "`TIME` at which it ends (default now)"),
			{Name: "period", Kind: Span, Help: "`LENGTH` of a window: a multiple of 1m"},
			{Name: "align", Default: string(series.None), Words: texts(series.Aligners), Help: "how the points of a series become one value a window"},
			{Name: "reduce", Default: string(series.None), Words: texts(series.Reducers), Help: "how the values of many series become one"},
			{Name: "by", Kind: Names, Again: true, Help: "`LABELS` to group series by, with --reduce; also service, user_id, unit"},
			{Name: "final", Kind: Switch, Help: "only windows that are final"},
			waits,
		},
		Answers: ok("Aligned"),
	}
	Usage = Operation{
		Tool: "usage", Method: http.MethodGet, Path: "/v1/topics/{topic}/usage", Summary: "Bills of a topic of kind meter, or with `at` what is held at an instant", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads,
		Params: []Param{
			inTopic, ofMeter, ofProvider, ofSpace, ofCustomer,
			helped(from, "`TIME` at which the range begins (required without --at)"), helped(to, "`TIME` at which it ends, such as now (required without --at)"),
			measure, waits,
			{Name: "group_by", Words: texts(slices.Concat(usage.Groupings, usage.Pairs)), Help: "a bill for each: space, provider, customer, meter, day or month; or space,customer or provider,customer"},
			{Name: "at", Kind: Time, Help: "`TIME` at which to say what is held, in place of a range; diffs of its millisecond count"},
			atMost("how many a page has at most; without it an answer of more is refused", usage.MaxPage), cursor,
		},
		Answers: []Answer{{Code: http.StatusOK, Type: "Usage", Or: "Sizes"}},
	}
	UsageDiffs = Operation{
		Tool: "usage_diffs", Method: http.MethodGet, Path: "/v1/topics/{topic}/usage/diffs", Summary: "The diffs behind a bill, the oldest first", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads,
		Params:  []Param{inTopic, ofMeter, ofProvider, ofSpace, ofCustomer, from, to, measure, waits, counts(atMost("how many at most", usage.MaxDiffs), usage.DefaultDiffs), cursor},
		Answers: ok("UsageDiffs"),
	}
	Trail = Operation{
		Tool: "trail", Method: http.MethodGet, Path: "/v1/topics/{topic}/trail", Summary: "Changes with how they ended, and the activity of requests, of a topic of kind audit", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Description: "Besides scope one of these must be given - request, resource, actor, service with resource_type, or open.",
		Params: []Param{
			inTopic,
			{Name: "request", Help: "show only the `REQUEST` of that id"},
			{Name: "resource", Help: "show only this `RESOURCE`"},
			{Name: "service", Help: "show only this `SERVICE`"},
			{Name: "resource_type", Help: "show only resources of this `TYPE`"},
			{Name: "method", Help: "show only this `METHOD`"},
			helped(where, "`FILTER` that holds too, as for almanac query; attributes need --service and --method"), from, to,
			{Name: "open_after", Default: trail.DefaultOpenAfter.String(), Kind: Span, Help: "with --open: `LENGTH` of time that a change may take"},
			counts(atMost("how many entries at most", trail.MaxLimit), trail.DefaultLimit), cursor,
			{Name: "scope", Kind: Texts, Required: true, Help: "`SCOPE` whose resources to show; may be given several times"},
			{Name: "actor", Kind: Texts, Help: "who acted, as it is stored; may be given several times"},
			{Name: "open", Kind: Switch, Help: "show changes that were announced and not concluded"},
			{Name: "history", Kind: Switch, Help: "show every event of each entry"},
		},
		Answers: ok("Trail"),
	}
)
