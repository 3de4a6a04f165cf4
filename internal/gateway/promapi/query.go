package promapi

import (
	"net/http"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/almanac-events/almanac/query/prometheus"
)

// maxNotes bounds the warnings, and the notes, of an answer.
const maxNotes = 10

func (a *API) query(r *http.Request, topic string, reply func(answer) error) error {
	at, err := timeOr(r, "time", time.Now())
	if err != nil {
		return err
	}
	return a.exec(r, &prometheus.Query{Topic: topic, Start: at}, reply)
}

func (a *API) queryRange(r *http.Request, topic string, reply func(answer) error) error {
	q := &prometheus.Query{Topic: topic}
	for _, p := range []struct {
		name string
		to   *time.Time
	}{{"start", &q.Start}, {"end", &q.End}} {
		t, err := parseTime(r.FormValue(p.name))
		if err != nil {
			return badParameter(p.name, err)
		}
		*p.to = t
	}
	var err error
	if q.Step, err = parseDuration(r.FormValue("step")); err != nil {
		return badParameter("step", err)
	}
	switch {
	case q.End.Before(q.Start):
		return badData("invalid parameter %q: end timestamp must not be before start time", "end")
	case q.Step < time.Millisecond:
		return badData("invalid parameter %q: zero or negative query resolution step widths are not accepted. Try a positive integer", "step")
	case q.End.Sub(q.Start)/q.Step > maxSteps:
		return badData("exceeded maximum resolution of %d points per timeseries. Try decreasing the query resolution (?step=XX)", maxSteps)
	}
	return a.exec(r, q, reply)
}

func (a *API) exec(r *http.Request, q *prometheus.Query, reply func(answer) error) error {
	q.Expr = r.FormValue("query")
	if text := r.FormValue("lookback_delta"); text != "" {
		d, err := parseDuration(text)
		if err != nil {
			return badParameter("lookback_delta", err)
		}
		q.Lookback = d
	}
	return a.cfg.Store.Exec(r.Context(), q, func(result *promql.Result, warning string) error {
		if result.Err != nil {
			return result.Err
		}
		all := answer{result: result}
		all.warnings, all.infos = result.Warnings.AsStrings(q.Expr, maxNotes, maxNotes)
		if warning != "" {
			all.warnings = append(all.warnings, warning)
		}
		return reply(all)
	})
}
