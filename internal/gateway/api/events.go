package api

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// Headers of a page as NDJSON: the cursor after it, and the one of the page before.
const (
	HeaderCursor = "Almanac-Cursor"
	HeaderBack   = "Almanac-Back"
)

// addEvents adds pages, single events and their neighbours.
func (a *API) addEvents(on routes) {
	on.serve(&operations.Events, a.page)
	on.serve(&operations.Search, a.read(a.search))
	on.serve(&operations.Event, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		req, err := aroundRequest(r, false)
		if err != nil {
			return nil, err
		}
		return a.cfg.Reader.Event(r.Context(), req.Topic, req.Ts, req.ID)
	}))
	on.serve(&operations.Around, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		req, err := aroundRequest(r, true)
		if err != nil {
			return nil, err
		}
		return a.cfg.Reader.Around(r.Context(), req)
	}))
}

func pageRequest(p *params) (query.Request, error) {
	req := query.Request{
		Topic: p.r.PathValue("topic"), From: p.time("from"), To: p.until("to"), Where: p.text("where"), Cursor: p.after(),
		Limit: p.number("limit"), Fields: p.names("fields"), Ascending: p.word("order") == "asc",
	}
	return req, p.end()
}

func (a *API) eventsPage(r *http.Request) (*query.Page, error) {
	p := paramsOf(r)
	req, err := pageRequest(p)
	if err != nil {
		return nil, err
	}
	page, err := a.cfg.Reader.Query(r.Context(), req)
	if err == nil {
		page.Cursor, page.Back = p.next(page.Cursor), p.next(page.Back)
	}
	return page, err
}

func searchRequest(p *params) query.SearchRequest {
	return query.SearchRequest{Topics: p.texts("topic"), From: p.time("from"), To: p.until("to"), Where: p.text("where"), Cursor: p.after()}
}

func (a *API) search(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	req := searchRequest(p)
	req.Limit, req.Fields, req.Ascending = p.number("limit"), p.names("fields"), p.word("order") == "asc"
	if err := p.end(); err != nil {
		return nil, err
	}
	page, err := a.cfg.Reader.Search(r.Context(), req)
	if err == nil {
		page.Cursor, page.Back = p.next(page.Cursor), p.next(page.Back)
	}
	return page, err
}

func (a *API) searchCount(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	req := searchRequest(p)
	if err := p.end(); err != nil {
		return nil, err
	}
	return a.cfg.Reader.SearchCount(r.Context(), req)
}

// page answers with one page: a JSON document, or its events as NDJSON or CSV.
func (a *API) page(w http.ResponseWriter, r *http.Request) {
	accept := r.Header.Get("Accept")
	asCSV := strings.Contains(accept, "text/csv")
	if !asCSV && !strings.Contains(accept, "ndjson") {
		a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
			return a.eventsPage(r)
		})(w, r)
		return
	}
	free, err := a.reads.Take(request.HolderOf(r))
	if err != nil {
		request.Fail(w, r, busy(err))
		return
	}
	defer free()
	page, err := a.eventsPage(r)
	if err != nil {
		request.Fail(w, r, a.refusal(err))
		return
	}
	var topic schemas.Topic
	if asCSV {
		if topic, err = a.cfg.Registry.Topic(r.Context(), r.PathValue("topic")); err != nil {
			request.Fail(w, r, a.refusal(err))
			return
		}
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if page.Cursor != "" {
		w.Header().Set(HeaderCursor, page.Cursor)
	}
	w.Header().Set(HeaderBack, page.Back)
	if asCSV {
		w.Header().Set("Content-Type", contentType("CSV"))
		out, err := query.NewCSV(w, &topic, paramsOf(r).names("fields"))
		if err == nil {
			err = out.Write(page.Events)
		}
		if err != nil {
			panic(http.ErrAbortHandler) // half an answer must not look whole
		}
		return
	}
	for _, ev := range page.Events {
		if _, err := w.Write(append(ev, '\n')); err != nil {
			return
		}
	}
	_, _ = io.WriteString(w, "") // an empty page has headers too
}

// aroundRequest reads the event that the path names.
func aroundRequest(r *http.Request, more bool) (query.AroundRequest, error) {
	p := paramsOf(r)
	req := query.AroundRequest{Topic: r.PathValue("topic"), ID: r.PathValue("id")}
	if more {
		req.N, req.Where = p.number("n"), p.text("where")
	}
	if err := p.end(); err != nil {
		return req, err
	}
	var err error
	req.Ts, err = eventTime(r.PathValue("ts"))
	return req, err
}

// eventTime reads an event's time as events have it.
func eventTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, bad("ts", text, "an event's time as it is in the answer, such as 2026-11-20T15:04:05.000000001Z")
	}
	return t, nil
}
