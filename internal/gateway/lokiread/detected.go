package lokiread

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/query/logql"
)

const (
	defaultFields = 1000
	maxFields     = 5000
	// sampledLines is how many lines fields are looked for in, unless told.
	sampledLines = 1000
)

// detected is a field of lines.
type detected struct {
	Label       string   `json:"label"`
	Type        string   `json:"type"`
	Cardinality int      `json:"cardinality"`
	Parsers     []string `json:"parsers"` // null: it is structured metadata
	JSONPath    []string `json:"jsonPath,omitempty"`

	values map[string]bool
}

// detectedFields lists what the newest lines of a selector have beside the labels of their streams.
func (a *API) detectedFields(r *http.Request, s logql.Scope) (any, error) {
	limit, err := number(r, "limit", defaultFields, maxFields)
	if err != nil {
		return nil, err
	}
	fields, err := a.detect(r, s)
	if err != nil {
		return nil, err
	}
	return map[string]any{"fields": fields[:min(len(fields), limit)], "limit": limit}, nil
}

// detectedValues lists the values of one such field.
func (a *API) detectedValues(r *http.Request, s logql.Scope) (any, error) {
	limit, err := number(r, "limit", defaultFields, maxFields)
	if err != nil {
		return nil, err
	}
	fields, err := a.detect(r, s)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, f := range fields {
		if f.Label == r.PathValue("name") {
			for v := range f.values {
				out = append(out, v)
			}
		}
	}
	slices.Sort(out)
	return map[string]any{"values": out[:min(len(out), limit)], "limit": limit}, nil
}

func (a *API) detect(r *http.Request, s logql.Scope) ([]*detected, error) {
	p, err := selector(r, "query")
	if err != nil {
		return nil, err
	}
	from, to, err := span(r)
	if err != nil {
		return nil, err
	}
	n, err := number(r, "line_limit", sampledLines, logql.MaxLines)
	if err != nil {
		return nil, err
	}
	lines, _, err := a.cfg.Engine.Lines(r.Context(), s, &logql.LinesRequest{Pipeline: p, From: from, To: to, Limit: n})
	if err != nil {
		return nil, err
	}
	by := map[string]*detected{}
	for _, e := range lines {
		for name, v := range e.Structured {
			see(by, name, v, "")
		}
		fields, parser := logql.Parsed(e)
		for _, from := range []map[string]string{e.Parsed, fields} {
			for name, v := range from {
				see(by, name, v, parser)
			}
		}
	}
	out := make([]*detected, 0, len(by))
	for _, f := range by {
		f.Cardinality = len(f.values)
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *detected) int {
		return cmp.Or(cmp.Compare(b.Cardinality, a.Cardinality), strings.Compare(a.Label, b.Label))
	})
	return out, nil
}

// see adds a value of a field. The type is the one that all values have.
func see(by map[string]*detected, name, value, parser string) {
	if strings.HasPrefix(name, "__") {
		return
	}
	kind, f := typeOf(value), by[name]
	if f == nil {
		f = &detected{Label: name, Type: kind, values: map[string]bool{}}
		by[name] = f
	}
	if numbers := (kind == "int" || kind == "float") && (f.Type == "int" || f.Type == "float"); f.Type != kind && numbers {
		f.Type = "float"
	} else if f.Type != kind {
		f.Type = "string"
	}
	if parser != "" && !slices.Contains(f.Parsers, parser) {
		f.Parsers = append(f.Parsers, parser)
		slices.Sort(f.Parsers)
	}
	f.values[value] = true
}

// typeOf is what a value looks like, by Loki's names.
func typeOf(v string) string {
	if _, err := strconv.ParseInt(v, 10, 64); err == nil {
		return "int"
	}
	if _, err := strconv.ParseFloat(v, 64); err == nil {
		return "float"
	}
	if v == "true" || v == "false" {
		return "boolean"
	}
	if _, err := time.ParseDuration(v); err == nil {
		return "duration"
	}
	if logql.IsSize(v) {
		return "bytes"
	}
	return "string"
}
