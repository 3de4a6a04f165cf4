package api

import (
	"cmp"
	"net/http"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// addCounts adds what counts events: in all, by time, and by the values of fields.
func (a *API) addCounts(on routes) {
	on.serve(&operations.Count, a.read(a.count))
	on.serve(&operations.SearchCount, a.read(a.searchCount))
	on.serve(&operations.Histogram, a.read(a.histogram))
	on.serve(&operations.Facets, a.read(a.facets))
	on.serve(&operations.Fields, a.read(a.fields))
	on.serve(&operations.Values, a.read(a.values))
}

func (a *API) count(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	req := query.HistogramRequest{Topic: r.PathValue("topic"), From: p.time("from"), To: p.until("to"), Where: p.text("where"), Cursor: p.after()}
	if err := p.end(); err != nil {
		return nil, err
	}
	h, err := a.cfg.Reader.Histogram(r.Context(), req)
	if err != nil {
		return nil, err
	}
	return counted{h.Count, h.Shards, h.Notice, h.Notes}, nil
}

// counted is how many events there are: a histogram without steps.
type counted struct {
	Count  uint64   `json:"count"`
	Shards []string `json:"shards"`
	Notice string   `json:"notice,omitempty"`
	Notes  []string `json:"notes,omitempty"`
}

func (a *API) histogram(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	req := query.HistogramRequest{
		Topic: r.PathValue("topic"), From: p.time("from"), To: p.until("to"), Where: p.text("where"), By: p.text("by"),
	}
	step, zone, buckets := p.text("step"), p.text("zone"), p.number("buckets")
	if step != "" && buckets > 0 {
		p.bad("buckets", "left out where step is given")
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	var err error
	if buckets > 0 {
		req.Step, err = query.StepOf(buckets, req.From, cmp.Or(req.To, schemas.Until(time.Now())), zone)
	} else {
		req.Step, err = query.ParseStep(step, zone)
	}
	if err != nil {
		return nil, request.Refuse(http.StatusBadRequest, "bad_parameter", "parameters step, buckets and zone: "+schemas.Text(err), "")
	}
	return a.cfg.Reader.Histogram(r.Context(), req)
}

func (a *API) facets(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	req := query.FacetRequest{
		Topic: r.PathValue("topic"), From: p.time("from"), To: p.until("to"), Where: p.text("where"), Fields: p.names("fields"),
		MaxValues: p.number("n"), MaxShards: p.number("shards"),
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	return a.cfg.Reader.Facets(r.Context(), req)
}

func completion(r *http.Request, field bool) (query.CompletionRequest, error) {
	p := paramsOf(r)
	req := query.CompletionRequest{
		Topic: r.PathValue("topic"), From: p.time("from"), To: p.until("to"), Prefix: p.text("prefix"), Limit: p.number("limit"),
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
