package lokiread

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/query/logql"
)

// flagsHeader is how a client asks that labels of a stream, structured metadata and what was parsed come apart.
const (
	flagsHeader = "X-Loki-Response-Encoding-Flags"
	categorized = "categorize-labels"
)

// comesApart reports whether a client asks for that.
func comesApart(r *http.Request) bool {
	return strings.Contains(r.Header.Get(flagsHeader), categorized)
}

// result is the data of an answer.
type result struct {
	ResultType    string         `json:"resultType"`
	Result        any            `json:"result"`
	EncodingFlags []string       `json:"encodingFlags,omitempty"`
	Stats         map[string]any `json:"stats"`
}

func success(data any) map[string]any { return map[string]any{"status": "success", "data": data} }

// warned is a success with notes, in the place that Loki has for them.
func warned(data any, notes []string) map[string]any {
	out := success(data)
	if len(notes) > 0 {
		out["warnings"] = notes
	}
	return out
}

// query answers a question for numbers at one instant.
func (a *API) query(r *http.Request, s logql.Scope) (any, error) {
	q, err := logql.Parse(r.FormValue("query"))
	if err != nil {
		return nil, err
	}
	at := time.Now().UTC()
	if text := r.FormValue("time"); text != "" {
		if at, err = parseTime(text); err != nil {
			return nil, err
		}
	}
	if q.Log != nil {
		return nil, badRequest("log queries are not supported as an instant query type, please change your query to a range query type")
	}
	got, err := a.cfg.Engine.Numbers(r.Context(), s, q.Metric, logql.Steps{Start: at, End: at})
	if err != nil {
		return nil, err
	}
	if got.Scalar {
		return success(result{ResultType: "scalar", Result: sample(got.Series[0].Points[0]), Stats: map[string]any{}}), nil
	}
	return vector(r, got)
}

// vector is series at one instant.
func vector(r *http.Request, got *logql.Answer) (any, error) {
	if err := fits(r, got.Series); err != nil {
		return nil, err
	}
	out := make([]any, len(got.Series))
	for i, one := range got.Series {
		out[i] = map[string]any{"metric": one.Labels, "value": sample(one.Points[0])}
	}
	return warned(result{ResultType: "vector", Result: out, Stats: map[string]any{}}, got.Notes), nil
}

// pointBytes is what a point takes until it is written: a pair, its text, and its place in the answer, which grows by doubling.
const pointBytes = 200

// fits refuses more series than an answer may have, and takes the memory of their points.
func fits(r *http.Request, all []logql.Series) error {
	if len(all) > logql.MaxSeries {
		return badRequest("maximum of series (%d) reached for a single query: group by fewer labels", logql.MaxSeries)
	}
	n := int64(0)
	for i := range all {
		n += int64(len(all[i].Points))
	}
	return budget.Of(r.Context()).Take(n * pointBytes)
}

func (a *API) queryRange(r *http.Request, s logql.Scope) (any, error) {
	q, err := logql.Parse(r.FormValue("query"))
	if err != nil {
		return nil, err
	}
	from, to, err := span(r)
	if err != nil {
		return nil, err
	}
	if q.Log != nil {
		if text := r.FormValue("interval"); text != "" && text != "0" {
			return nil, badRequest("interval is not built: leave it out, or count lines with a step, as in sum(count_over_time({…}[1m]))")
		}
		return a.lines(r, s, q.Log, from, to)
	}
	step := max(to.Sub(from)/250, time.Second).Truncate(time.Second) // Loki's default
	if text := r.FormValue("step"); text != "" {
		if step, err = parseStep(text); err != nil {
			return nil, err
		}
	}
	got, err := a.cfg.Engine.Numbers(r.Context(), s, q.Metric, logql.Steps{Start: from, End: to, Step: step})
	if err != nil {
		return nil, err
	}
	return matrix(r, got)
}

// matrix is series with their points.
func matrix(r *http.Request, got *logql.Answer) (any, error) {
	all := got.Series
	if err := fits(r, all); err != nil {
		return nil, err
	}
	out := make([]any, len(all))
	for i := range all {
		values := make([]any, len(all[i].Points))
		for k, p := range all[i].Points {
			values[k] = sample(p)
		}
		out[i] = map[string]any{"metric": all[i].Labels, "values": values}
	}
	return warned(result{ResultType: "matrix", Result: out, Stats: map[string]any{}}, got.Notes), nil
}

// sample is an instant in seconds, and a value as text.
func sample(p logql.Point) [2]any {
	return [2]any{float64(p.At/int64(time.Millisecond)) / 1000, strconv.FormatFloat(p.Value, 'f', -1, 64)}
}

// stream is lines that have their labels in common.
type stream struct {
	Labels map[string]string `json:"stream"`
	Values []any             `json:"values"`
}

func (a *API) lines(r *http.Request, s logql.Scope, p *logql.Pipeline, from, to time.Time) (any, error) {
	limit, err := number(r, "limit", logql.DefaultLines, logql.MaxLines)
	if err != nil {
		return nil, err
	}
	req := &logql.LinesRequest{Pipeline: p, From: from, To: to, Limit: limit}
	switch direction := strings.ToLower(r.FormValue("direction")); direction {
	case "", "backward":
	case "forward":
		req.Forward = true
	default:
		return nil, badRequest("direction must be forward or backward, not %q", direction)
	}
	all, notes, err := a.cfg.Engine.Lines(r.Context(), s, req)
	if err != nil {
		return nil, err
	}
	out := result{ResultType: "streams", Stats: map[string]any{}}
	apart := comesApart(r)
	if apart {
		out.EncodingFlags = []string{categorized}
	}
	out.Result = streams(all, apart)
	return warned(out, notes), nil
}

// streams groups lines by labels, in the order of the first line of each.
func streams(all []*logql.Entry, apart bool) []*stream {
	out, by := []*stream{}, map[string]*stream{}
	for _, e := range all {
		labels := labelsOf(e, apart)
		key := logql.FormatLabels(labels)
		into := by[key]
		if into == nil {
			into = &stream{Labels: labels}
			by[key] = into
			out = append(out, into)
		}
		into.Values = append(into.Values, valueOf(e, apart))
	}
	return out
}

// labelsOf are the labels by which lines are grouped.
func labelsOf(e *logql.Entry, apart bool) map[string]string {
	if apart {
		return e.Stream
	}
	return e.Labels()
}

// valueOf is a line with its time, and with what else it has where that comes apart.
func valueOf(e *logql.Entry, apart bool) []any {
	value := []any{strconv.FormatInt(e.Ts, 10), e.Line}
	if !apart {
		return value
	}
	more := map[string]any{}
	if len(e.Structured) > 0 {
		more["structuredMetadata"] = e.Structured
	}
	if len(e.Parsed) > 0 {
		more["parsed"] = e.Parsed
	}
	return append(value, more)
}
