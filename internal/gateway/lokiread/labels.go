package lokiread

import (
	"cmp"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/query/logql"
)

// labels lists what names streams.
func (a *API) labels(r *http.Request, s logql.Scope) (any, error) {
	p, err := selector(r, "query")
	if err != nil {
		return nil, err
	}
	names, err := a.cfg.Engine.Labels(r.Context(), s, p)
	if err != nil {
		return nil, err
	}
	return success(names), nil
}

// values lists the values of a label that names streams.
func (a *API) values(r *http.Request, s logql.Scope) (any, error) {
	if r.PathValue("name") == logql.LabelTopic {
		p, err := selector(r, "query")
		if err != nil {
			return nil, err
		}
		names, err := a.cfg.Engine.Topics(r.Context(), s, p)
		if err != nil {
			return nil, err
		}
		return success(names), nil
	}
	counts, err := a.counts(r, s, "query", []string{r.PathValue("name")})
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, c := range counts {
		if v := c.Labels[r.PathValue("name")]; v != "" {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return success(slices.Compact(out)), nil
}

// counts counts the lines of a selector for each set of values of labels; of all that name streams where none is given.
func (a *API) counts(r *http.Request, s logql.Scope, name string, labels []string) ([]logql.LabelsCount, error) {
	p, err := selector(r, name)
	if err != nil {
		return nil, err
	}
	from, to, err := span(r)
	if err != nil {
		return nil, err
	}
	return a.cfg.Engine.Counts(r.Context(), s, &logql.CountsRequest{Pipeline: p, From: from, To: to, Labels: labels})
}

// series lists the streams that selectors find.
func (a *API) series(r *http.Request, s logql.Scope) (any, error) {
	from, to, err := span(r)
	if err != nil {
		return nil, err
	}
	matches := slices.Concat(r.Form["match[]"], r.Form["match"])
	if len(matches) == 0 {
		matches = []string{"{}"}
	}
	const mostMatches = 16
	if len(matches) > mostMatches {
		return nil, badRequest("%d selectors, the limit is %d", len(matches), mostMatches)
	}
	out, seen := []map[string]string{}, map[string]bool{}
	for _, m := range matches {
		p, err := logql.ParseSelector(m)
		if err != nil {
			return nil, err
		}
		all, err := a.cfg.Engine.Counts(r.Context(), s, &logql.CountsRequest{Pipeline: p, From: from, To: to})
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			if key := logql.FormatLabels(c.Labels); !seen[key] {
				seen[key] = true
				out = append(out, c.Labels)
			}
		}
	}
	return success(out), nil
}

// stats says how much a selector finds. A chunk is of Loki; here it is as many as streams.
func (a *API) stats(r *http.Request, s logql.Scope) (any, error) {
	p, err := selector(r, "query")
	if err != nil {
		return nil, err
	}
	from, to, err := span(r)
	if err != nil {
		return nil, err
	}
	req := &logql.CountsRequest{Pipeline: p, From: from, To: to}
	lines, err := a.cfg.Engine.Counts(r.Context(), s, req)
	if err != nil {
		return nil, err
	}
	req.Bytes = true
	bytes, err := a.cfg.Engine.Counts(r.Context(), s, req)
	if err != nil {
		return nil, err
	}
	total := func(all []logql.LabelsCount) (n uint64) {
		for _, c := range all {
			n += c.Count
		}
		return n
	}
	return map[string]any{"streams": len(lines), "chunks": len(lines), "entries": total(lines), "bytes": total(bytes)}, nil
}

// detectedLabels lists the labels that name streams, with how many values they have.
func (a *API) detectedLabels(r *http.Request, s logql.Scope) (any, error) {
	counts, err := a.counts(r, s, "query", nil)
	if err != nil {
		return nil, err
	}
	values := map[string]map[string]bool{}
	for _, c := range counts {
		for name, v := range c.Labels {
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][v] = true
		}
	}
	type detected struct {
		Label       string `json:"label"`
		Cardinality int    `json:"cardinality"`
	}
	out := []detected{}
	for name, all := range values {
		out = append(out, detected{name, len(all)})
	}
	slices.SortFunc(out, func(a, b detected) int { return strings.Compare(a.Label, b.Label) })
	return map[string]any{"detectedLabels": out}, nil
}

// patterns are not built: a client that asks for them is told that there are none.
func (a *API) patterns(*http.Request, logql.Scope) (any, error) { return success([]any{}), nil }

// lokiVersion is the version of Loki whose API this is, by which Grafana decides what to ask for.
const lokiVersion = "3.0.0"

func (a *API) buildinfo(*http.Request, logql.Scope) (any, error) {
	return map[string]string{"version": lokiVersion, "revision": "almanac " + cmp.Or(a.cfg.Version, "unknown"), "branch": "", "buildUser": "", "buildDate": "", "goVersion": runtime.Version()}, nil
}
