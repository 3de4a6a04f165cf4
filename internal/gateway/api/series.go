package api

import (
	"net/http"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query/series"
)

// addSeries adds reads of topics of kind metric.
func (a *API) addSeries(on routes) {
	on.serve(&operations.Series, a.read(a.series))
	on.serve(&operations.Align, a.read(a.align))
}

// listed is the answer of series.
type listed struct {
	Series []series.Series `json:"series"`
	// More: there are others.
	More bool `json:"more"`
}

func (a *API) series(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	req := series.ListRequest{
		Topic: r.PathValue("topic"), Metric: p.text("metric"), Where: p.text("where"), From: p.time("from"), To: p.until("to"), Limit: p.number("limit"),
	}
	wait := p.wait()
	if err := p.end(); err != nil {
		return nil, err
	}
	if err := a.stored(r, req.Topic, wait); err != nil {
		return nil, err
	}
	list, more, err := series.New(a.cfg.Reader).List(r.Context(), req)
	return listed{list, more}, err
}

func (a *API) align(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	req := series.Request{
		Topic: r.PathValue("topic"), Where: p.text("where"), From: p.time("from"), To: p.until("to"), Period: p.span("period"),
		Align: series.Aligner(p.text("align")), Reduce: series.Aligner(p.text("reduce")), By: p.names("by"), Final: p.yes("final"),
	}
	metrics, wait := p.texts("metric"), p.wait()
	if err := p.end(); err != nil {
		return nil, err
	}
	if err := a.stored(r, req.Topic, wait); err != nil {
		return nil, err
	}
	return series.New(a.cfg.Reader).AlignEach(r.Context(), req, metrics)
}
