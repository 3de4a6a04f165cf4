package promapi

import (
	"context"
	"maps"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/almanac-events/almanac/query/prometheus"
)

// selection is what a request for series or labels is about.
type selection struct {
	querier  storage.Querier
	matchers [][]*labels.Matcher
	limit    int
	warnings []string
}

// selected reads the parameters of a request for series or labels.
func (a *API) selected(r *http.Request, topic string) (*selection, error) {
	from, err := timeOr(r, "start", time.UnixMilli(0))
	if err != nil {
		return nil, err
	}
	to, err := timeOr(r, "end", time.UnixMilli(math.MaxInt64/int64(time.Millisecond)))
	if err != nil {
		return nil, err
	}
	s := &selection{}
	if s.limit, err = limit(r); err != nil {
		return nil, err
	}
	if s.matchers, err = a.cfg.Store.Parser().ParseMetricSelectors(r.Form["match[]"]); err != nil {
		return nil, badParameter("match[]", err)
	}
	warning, err := a.cfg.Store.Fresh(r.Context(), topic)
	if err != nil {
		return nil, err
	}
	if warning != "" {
		s.warnings = []string{warning}
	}
	s.querier, err = a.cfg.Store.Topic(topic).Querier(from.UnixMilli(), to.UnixMilli())
	return s, err
}

func (s *selection) reply(list any, cut bool, reply func(answer) error) error {
	if cut {
		s.warnings = append(s.warnings, "results truncated due to limit")
	}
	return reply(answer{data: list, warnings: s.warnings})
}

func (a *API) series(r *http.Request, topic string, reply func(answer) error) error {
	if len(r.Form["match[]"]) == 0 {
		return badData("no match[] parameter provided")
	}
	s, err := a.selected(r, topic)
	if err != nil {
		return err
	}
	defer func() { _ = s.querier.Close() }()
	seen := map[string]labels.Labels{}
	for _, m := range s.matchers {
		set := s.querier.Select(r.Context(), false, prometheus.LabelsOnly(s.querier), m...)
		for set.Next() {
			l := set.At().Labels()
			seen[l.String()] = l
		}
		if err := set.Err(); err != nil {
			return err
		}
	}
	out := make([]labels.Labels, 0, len(seen))
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		out = append(out, seen[key])
	}
	cut := s.limit > 0 && len(out) > s.limit
	if cut {
		out = out[:s.limit]
	}
	return s.reply(out, cut, reply)
}

func (a *API) labels(r *http.Request, topic string, reply func(answer) error) error {
	return a.words(r, topic, reply, func(ctx context.Context, q storage.Querier, m []*labels.Matcher) ([]string, error) {
		list, _, err := q.LabelNames(ctx, nil, m...)
		return list, err
	})
}

func (a *API) values(r *http.Request, topic string, reply func(answer) error) error {
	name := r.PathValue("name")
	if strings.HasPrefix(name, "U__") {
		name = model.UnescapeName(name, model.ValueEncodingEscaping)
	}
	if !model.UTF8Validation.IsValidLabelName(name) {
		return badData("invalid label name: %q", name)
	}
	return a.words(r, topic, reply, func(ctx context.Context, q storage.Querier, m []*labels.Matcher) ([]string, error) {
		list, _, err := q.LabelValues(ctx, name, nil, m...)
		return list, err
	})
}

// words answers with a list of words, of all selectors together.
func (a *API) words(r *http.Request, topic string, reply func(answer) error, read func(context.Context, storage.Querier, []*labels.Matcher) ([]string, error)) error {
	s, err := a.selected(r, topic)
	if err != nil {
		return err
	}
	defer func() { _ = s.querier.Close() }()
	if len(s.matchers) == 0 {
		s.matchers = [][]*labels.Matcher{nil}
	}
	all := []string{}
	for _, m := range s.matchers {
		list, err := read(r.Context(), s.querier, m)
		if err != nil {
			return err
		}
		all = append(all, list...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	cut := s.limit > 0 && len(all) > s.limit
	if cut {
		all = all[:s.limit]
	}
	return s.reply(all, cut, reply)
}

// metadata answers with the types and units that the points of each metric have.
func (a *API) metadata(r *http.Request, topic string, reply func(answer) error) error {
	n, err := limit(r)
	if err != nil {
		return err
	}
	all, err := a.cfg.Store.Metadata(r.Context(), topic, r.FormValue("metric"))
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(all))
	if n > 0 && len(names) > n {
		for _, name := range names[n:] {
			delete(all, name)
		}
	}
	return reply(answer{data: all})
}

// buildinfo names the version of the engine, by which clients know what it can do.
func (a *API) buildinfo(_ *http.Request, _ string, reply func(answer) error) error {
	return reply(answer{data: map[string]string{
		"version": prometheus.EngineVersion(), "revision": "", "branch": "", "buildUser": "almanac " + a.cfg.Version, "buildDate": "", "goVersion": runtime.Version(),
	}})
}
