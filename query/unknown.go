package query

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// maxUnknown is how many attributes of a filter are looked for.
const maxUnknown = 16

// unknown tells a filter that selects nothing from one on attributes that are not there: it
// names those that none of the newest events in the range has. "" where each is there. It is a
// hint beside an answer that stands without it, so that a failure is none of the answer.
func (r *Reader) unknown(ctx context.Context, p *plan) string {
	_, names := p.asked.Uses()
	if names = names[:min(len(names), maxUnknown)]; len(names) == 0 {
		return ""
	}
	req := &CompletionRequest{Topic: p.topic.Name, From: time.Unix(0, p.from)}
	if p.to < math.MaxInt64 {
		req.To = time.Unix(0, p.to).Add(1)
	}
	s, err := r.sample(ctx, req, func(*schemas.Topic) (string, map[string]string, error) {
		return fmt.Sprintf("arrayConcat([(toInt64(%d), '')], arrayMap(k -> (toInt64(%d), k), arrayFilter(k -> mapContains(`%s`, k), {names:Array(String)})))",
			sampledEvents, sampledOthers, schemas.ColAttributes), map[string]string{"names": filter.ParamArray(names, true)}, nil
	})
	if err != nil {
		return ""
	}
	names = slices.DeleteFunc(names, func(name string) bool { return s.cells[cell{sampledOthers, name}] > 0 })
	return unknownNotice(p.topic.Name, names, &s.sample)
}

// unknownNotice says that events were looked at, and that none of them has these attributes.
func unknownNotice(topic string, names []string, s *Sample) string {
	if len(names) == 0 || s.Read == 0 {
		return ""
	}
	for i, name := range names {
		names[i] = filter.AttributeName(name)
	}
	of := fmt.Sprintf("none of the %d events in this range has", s.Read)
	if s.Sampled {
		of = fmt.Sprintf("none of the newest %d events in this range has", s.Read)
	}
	return fmt.Sprintf("%s %s; `almanac fields %s` lists what they have", of, strings.Join(names, " or "), topic)
}

// noticed adds to a notice, and tells the caller that listens.
func noticed(notice *string, more string, hear func(string)) {
	if more == "" {
		return
	}
	if *notice != "" {
		*notice += ". "
	}
	if *notice += more; hear != nil {
		hear(more)
	}
}
