package api

import (
	"errors"
	"net/http"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query/trail"
)

// addTrail adds the trail of topics of kind audit.
func (a *API) addTrail(on routes) {
	on.serve(&operations.Trail, a.read(a.trail))
}

// trail answers with a page of entries.
func (a *API) trail(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	req := trail.Request{
		Topic: r.PathValue("topic"), RequestID: p.text("request"), Resource: p.text("resource"), Service: p.text("service"),
		ResourceType: p.text("resource_type"), Method: p.text("method"), Where: p.text("where"), From: p.time("from"), To: p.until("to"),
		OpenAfter: p.span("open_after"), Limit: p.number("limit"), Cursor: p.after(),
	}
	req.Scopes, req.Actors = p.texts("scope"), p.texts("actor")
	req.Open, req.History = p.yes("open"), p.yes("history")
	if err := p.end(); err != nil {
		return nil, err
	}
	page, err := trail.New(a.cfg.Reader).Page(r.Context(), req)
	if errors.Is(err, trail.ErrIncomplete) {
		return nil, request.Refuse(http.StatusServiceUnavailable, "not_stored", err.Error(), "send the request again")
	}
	if err == nil {
		page.Cursor = p.next(page.Cursor)
	}
	return page, err
}
