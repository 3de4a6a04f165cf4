package api

import (
	"fmt"
	"net/http"

	"github.com/almanac-events/almanac/documents"
)

// listDocuments lists documents by their creation or, with order=changed or one of changed_from
// and changed_to, by their last change.
func listDocuments(c *documents.Collection, p *params, _ http.ResponseWriter, r *http.Request) (any, error) {
	s := documents.Selection{Limit: p.number("limit"), Cursor: p.after()}
	s.Path, s.All, s.Below, s.Where, s.NoBodies = p.text("path"), !p.q.Has("path"), p.yes("below"), p.text("where"), p.yes("no_bodies")
	list := c.List
	if order := p.word("order"); order == "changed" || p.q.Has("changed_from") || p.q.Has("changed_to") {
		s.From, s.To, list = p.time("changed_from"), p.until("changed_to"), c.Changed
		p.without("created_from", "created_to")
	} else {
		s.From, s.To = p.time("created_from"), p.until("created_to")
		p.without("changed_from", "changed_to")
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	page, err := list(r.Context(), s)
	if err != nil {
		return nil, err
	}
	page.Documents, page.Cursor = filled(page.Documents), p.next(page.Cursor)
	return page, nil
}

func documentHistory(c *documents.Collection, p *params, _ http.ResponseWriter, r *http.Request) (any, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	versions, err := c.History(r.Context(), r.PathValue("id"))
	return documents.Page{Documents: versions}, err
}

// loadRequest names documents.
type loadRequest struct {
	IDs []string `json:"ids"`
}

// batchRequest is changes that are carried out together.
type batchRequest struct {
	Changes []documents.Change `json:"changes"`
}

// loadDocuments answers documents aligned with their ids, null where there is none.
func loadDocuments(c *documents.Collection, p *params, w http.ResponseWriter, r *http.Request) (any, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	var q loadRequest
	if err := body(w, r, &q); err != nil {
		return nil, err
	}
	docs, err := c.LoadMany(r.Context(), q.IDs)
	return documentList{filled(docs)}, err
}

// maxBatchBody bounds the body of a batch: its documents, with spaces, and the rest.
const maxBatchBody = 2 * documents.MaxBatchBytes

// batchDocuments carries out changes of different documents, all or none.
func batchDocuments(c *documents.Collection, p *params, w http.ResponseWriter, r *http.Request) (any, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	var q batchRequest
	if err := bodyWithin(w, r, maxBatchBody, &q); err != nil {
		return nil, err
	}
	changes(r.Context(), len(q.Changes))
	ops := make([]documents.Op, len(q.Changes))
	for i := range q.Changes {
		var err error
		if ops[i], err = q.Changes[i].Parse(); err != nil {
			return nil, fmt.Errorf("change %d of the batch: %w", i+1, err)
		}
	}
	docs, err := c.Batch(r.Context(), ops...)
	return documentList{filled(docs)}, err
}
