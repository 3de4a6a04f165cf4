package api

import (
	"net/http"

	"github.com/almanac-events/almanac/query"
)

// addCounts adds what counts events: in all, by time, and by the values of fields.
func (a *API) addCounts(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/topics/{topic}/count", a.read(a.count))
	mux.HandleFunc("GET /v1/topics/{topic}/histogram", a.read(a.histogram))
	mux.HandleFunc("GET /v1/topics/{topic}/facets", a.read(a.facets))
	mux.HandleFunc("GET /v1/topics/{topic}/fields", a.read(a.fields))
	mux.HandleFunc("GET /v1/topics/{topic}/values", a.read(a.values))
}

func (a *API) count(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	req := query.HistogramRequest{Topic: r.PathValue("topic"), From: p.time("from"), To: p.until("to"), Where: p.text("where")}
	if err := p.end(); err != nil {
		return nil, err
	}
	return a.cfg.Reader.Histogram(r.Context(), req)
}

func (a *API) histogram(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	req := query.HistogramRequest{
		Topic: r.PathValue("topic"), From: p.time("from"), To: p.until("to"), Where: p.text("where"), By: p.text("by"), Step: p.span("step"),
	}
	if req.Step == 0 {
		p.bad("step", "a length of time such as 1m")
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	return a.cfg.Reader.Histogram(r.Context(), req)
}

func (a *API) facets(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	req := query.FacetRequest{
		Topic: r.PathValue("topic"), From: p.time("from"), To: p.until("to"), Where: p.text("where"), Fields: p.names("fields"),
		Values: p.number("n", 1, query.MaxFacetValues), Shards: p.number("shards", 1, query.MaxFacetShards),
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	return a.cfg.Reader.Facets(r.Context(), req)
}

func completion(r *http.Request, field bool) (query.CompleteRequest, error) {
	p := paramsOf(r)
	req := query.CompleteRequest{
		Topic: r.PathValue("topic"), From: p.time("from"), To: p.until("to"), Prefix: p.text("prefix"), Limit: p.number("limit", 1, query.MaxCompletions),
	}
	if field {
		req.Field = p.text("field")
	}
	return req, p.end()
}

func (a *API) fields(_ http.ResponseWriter, r *http.Request) (any, error) {
	req, err := completion(r, false)
	if err != nil {
		return nil, err
	}
	return a.cfg.Reader.Fields(r.Context(), req)
}

func (a *API) values(_ http.ResponseWriter, r *http.Request) (any, error) {
	req, err := completion(r, true)
	if err != nil {
		return nil, err
	}
	return a.cfg.Reader.Values(r.Context(), req)
}
