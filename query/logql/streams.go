package logql

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/budget"
)

// Labels lists what names streams, of the topics that matchers leave.
func (e *Engine) Labels(ctx context.Context, s Scope, p *Pipeline) ([]string, error) {
	topics, err := e.matching(ctx, s, p.Matchers)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for i := range topics {
		out = append(out, fieldsOf(&topics[i], nil).streams...)
	}
	if len(out) > 0 {
		out = append(out, "service_name")
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Topics lists the topics that matchers leave.
func (e *Engine) Topics(ctx context.Context, s Scope, p *Pipeline) ([]string, error) {
	topics, err := e.matching(ctx, s, p.Matchers)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for i := range topics {
		out = append(out, topics[i].Name)
	}
	return out, nil
}

// CountsRequest asks how many lines there are for each set of values of labels.
type CountsRequest struct {
	Pipeline *Pipeline
	// From (inclusive) and To (exclusive) bound the events' time.
	From, To time.Time
	// Labels to tell apart; nil: all that name streams.
	Labels []string
	// Bytes counts the bytes of lines in place of lines.
	Bytes bool
}

// LabelsCount is how many lines a set of labels has.
type LabelsCount struct {
	Labels map[string]string
	Count  uint64
}

// Counts counts lines.
func (e *Engine) Counts(ctx context.Context, s Scope, req *CountsRequest) ([]LabelsCount, error) {
	x := &RangeAggregation{Func: "count_over_time", Pipeline: req.Pipeline, Range: max(req.To.Sub(req.From), 1)}
	if req.Bytes {
		x.Func = "bytes_over_time"
	}
	at := req.To.Add(-1) // a range does not have its first instant, and has its last
	ev := &evaluation{e: e, scope: s, steps: Steps{Start: at, End: at}, account: budget.Of(ctx)}
	around := &VectorAggregation{Func: "sum", Inner: x, Group: &Grouping{Without: true}}
	if req.Labels != nil {
		around.Group = &Grouping{Labels: req.Labels}
	}
	v, err := ev.of(ctx, around, nil)
	if err != nil {
		return nil, err
	}
	out := make([]LabelsCount, 0, len(v))
	for _, key := range sortedKeys(v) {
		if r := v[key]; r.there[0] {
			out = append(out, LabelsCount{r.labels, uint64(r.values[0])})
		}
	}
	return out, nil
}

// Parsed returns what the parser that is for a line would make of it, and the parser's name: json where the line begins as an object, else
// logfmt. The entry stays as it is.
func Parsed(e *Entry) (fields map[string]string, parser string) {
	probe := &Entry{Line: e.Line, Stream: e.Stream, Structured: e.Structured}
	if strings.HasPrefix(strings.TrimLeft(e.Line, " \t\r\n"), "{") {
		(&jsonParser{}).apply(probe)
		return probe.Parsed, "json"
	}
	(&logfmtParser{}).apply(probe)
	return probe.Parsed, "logfmt"
}
