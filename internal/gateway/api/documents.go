package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// addDocuments adds what stores, loads, lists and locks documents. An ETag is a document's version.
func (a *API) addDocuments(on routes) {
	if a.cfg.Documents == nil {
		return
	}
	for op, f := range map[*operations.Operation]documentRoute{
		&operations.CreateDocument: createDocument,
		&operations.Document:       getDocument, &operations.PutDocument: putDocument, &operations.RemoveDocument: removeDocument,
		&operations.DocumentLock: getLock, &operations.LockDocument: lockDocument, &operations.UnlockDocument: unlockDocument,
	} {
		on.serve(op, a.onDocuments(a.timing, f))
	}
	// A page or a load holds up to 1,000 documents and a batch 8 MiB, so these have fewer slots, of their own (maxPages).
	for op, f := range map[*operations.Operation]documentRoute{
		&operations.Documents: listDocuments, &operations.DocumentHistory: documentHistory,
		&operations.BatchDocuments: batchDocuments, &operations.LoadDocuments: loadDocuments,
	} {
		on.serve(op, a.onDocuments(a.pages, f))
	}
}

// documentRoute is a request about the documents of a topic.
type documentRoute func(c *documents.Collection, p *params, w http.ResponseWriter, r *http.Request) (any, error)

func (a *API) onDocuments(slots *request.Slots, f documentRoute) http.HandlerFunc {
	return a.within(slots, func(w http.ResponseWriter, r *http.Request) (any, error) {
		c, err := a.documents.open(r.Context(), a.cfg.Documents, r.PathValue("topic"))
		if err != nil {
			return documentFailed(r, err)
		}
		v, err := f(c, paramsOf(r), w, r)
		if err != nil {
			return documentFailed(r, err)
		}
		return v, nil
	})
}

// documentRefusal is a refusal with what a client needs to go on.
type documentRefusal struct {
	Error *request.Error `json:"error"`
	// Have is the version that is there.
	Have uint64 `json:"have,omitempty"`
	// HavePath is the path that it is under, where that was not the one that was named.
	HavePath string `json:"have_path,omitempty"`
	// Lock is the lock that is held.
	Lock *documents.Lock `json:"lock,omitempty"`
	// Changes are those for which a batch was refused.
	Changes []changeRefusal `json:"changes,omitempty"`
}

type changeRefusal struct {
	// Index counts from 0.
	Index int    `json:"index"`
	ID    string `json:"id"`
	documentRefusal
}

// documentErrors are the refusals of documents.
var documentErrors = rules{
	{documents.ErrVersion, http.StatusPreconditionFailed, "version", "load the document and decide again"},
	{documents.ErrLocked, http.StatusLocked, "locked", ""},
	{documents.ErrExists, http.StatusConflict, "exists", ""},
	{documents.ErrPath, http.StatusConflict, "other_path", ""},
	{documents.ErrNotFound, http.StatusNotFound, "not_found", ""},
	{documents.ErrKind, http.StatusBadRequest, "wrong_kind", ""},
	{documents.ErrFull, http.StatusInsufficientStorage, "full", "what is archived leaves DOCS; `almanac doctor` says what waits, `almanac streams apply DOCS` gives it more room"},
	{fronts.ErrStore, http.StatusInsufficientStorage, "store_full", "the operator makes room for NATS; `almanac doctor` says where"},
	{documents.ErrBusy, http.StatusConflict, "busy", "send the request again"},
	{fronts.ErrCut, http.StatusServiceUnavailable, "cut", "send the request again"},
	{fronts.ErrUnknown, http.StatusServiceUnavailable, "outcome_unknown", "load the document to see whether it was written"},
	{documents.ErrLostFront, http.StatusServiceUnavailable, "lost_front", "`almanac repair` restores it"},
	{fronts.ErrReplaced, http.StatusServiceUnavailable, "replaced", "`almanac repair` puts back what is stored; then send the request again"},
	{documents.ErrArchive, http.StatusServiceUnavailable, "archive_away", "send the request again; /readyz says what is wrong"},
}

// refusedDocument is an error as an answer has it; nil: it is not one of documents.
func refusedDocument(err error) *documentRefusal {
	refused := documentErrors.of(err)
	if refused == nil {
		return nil
	}
	out := &documentRefusal{Error: refused}
	if v := (*documents.VersionError)(nil); errors.As(err, &v) {
		out.Have = v.Have
	}
	if p := (*documents.PathError)(nil); errors.As(err, &p) {
		out.HavePath = p.Have
	}
	if l := (*documents.LockError)(nil); errors.As(err, &l) {
		out.Lock = l.Holder
	}
	return out
}

// documentFailed answers an error: with what a client needs to go on, where that is known.
func documentFailed(r *http.Request, err error) (any, error) {
	if f := (*filter.Error)(nil); errors.As(err, &f) {
		return nil, request.Refuse(http.StatusBadRequest, "bad_where", f.Error(), "")
	}
	batch := (*documents.BatchError)(nil)
	if !errors.As(err, &batch) {
		out := refusedDocument(err)
		if out == nil || errors.Is(err, schemas.ErrRequest) && out.Error.Status != http.StatusBadRequest {
			return nil, err
		}
		out.Error = request.ErrorOf(r, out.Error)
		return status{out.Error.Status, out}, nil
	}
	first := refusedDocument(batch.Members[0].Err)
	if first == nil {
		return nil, err
	}
	out := &documentRefusal{Error: request.ErrorOf(r, request.Refuse(first.Error.Status, first.Error.Code, batch.Error(), "nothing was written; changes names all that are refused"))}
	for _, m := range batch.Members {
		if one := refusedDocument(m.Err); one != nil {
			out.Changes = append(out.Changes, changeRefusal{m.Index, m.ID, *one})
		}
	}
	return status{out.Error.Status, out}, nil
}

// seen is a document as an answer, with its ETag.
func seen(w http.ResponseWriter, code int, d *documents.Document) (any, error) {
	w.Header().Set("ETag", etag(d.Version))
	return status{code, d}, nil
}

func etag(version uint64) string { return strconv.Quote(strconv.FormatUint(version, 10)) }

// conditions reads If-Match and If-None-Match of a write.
func conditions(r *http.Request, op *documents.Op) error {
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if r.Header.Values(name) != nil && r.Header.Get(name) == "" {
			return request.Refuse(http.StatusBadRequest, "bad_header", name+" is empty: leave it out, or send the ETag of a document, such as \"3\"", "")
		}
	}
	if none != "" && (none != "*" || match != "") {
		return request.Refuse(http.StatusBadRequest, "bad_header", fmt.Sprintf("If-None-Match is %s, it must be * and without If-Match", none), "")
	}
	if none == "*" {
		op.Kind = documents.Create
	}
	if match != "" && op.Kind == documents.Put {
		op.Kind = documents.Update
	}
	if match != "" && match != "*" {
		n, err := strconv.ParseUint(strings.Trim(match, `"`), 10, 64)
		if err != nil || n < 1 {
			return request.Refuse(http.StatusBadRequest, "bad_header", fmt.Sprintf("If-Match is %s, it must be the ETag of a document, such as \"3\"", match), "")
		}
		op.If = documents.IfVersion(n)
	}
	return nil
}

// maxDocumentBody bounds a document as it is sent: with spaces, which are not kept.
const maxDocumentBody = 4 * schemas.MaxDocumentBytes

// writeDocument reads the lock and the body of a change, and carries it out.
func writeDocument(c *documents.Collection, p *params, w http.ResponseWriter, r *http.Request, op *documents.Op) (*documents.Document, error) {
	op.ID, op.Lock, op.Unlock = r.PathValue("id"), p.token("lock"), p.yes("unlock")
	op.Path, op.In = p.text("path"), p.q.Has("path")
	if op.Kind == documents.Create || op.Kind == documents.Put {
		op.Created = p.time("created")
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	if op.Kind != documents.Remove {
		var err error
		if op.Body, err = whole(w, r, maxDocumentBody); err != nil {
			return nil, err
		}
	}
	return c.Write(r.Context(), *op)
}

func createDocument(c *documents.Collection, p *params, w http.ResponseWriter, r *http.Request) (any, error) {
	d, err := writeDocument(c, p, w, r, &documents.Op{Kind: documents.Create})
	if err != nil {
		return nil, err
	}
	return seen(w, http.StatusCreated, d)
}

func putDocument(c *documents.Collection, p *params, w http.ResponseWriter, r *http.Request) (any, error) {
	op := &documents.Op{Kind: documents.Put}
	if err := conditions(r, op); err != nil {
		return nil, err
	}
	d, err := writeDocument(c, p, w, r, op)
	if err != nil {
		return nil, err
	}
	if d.Made {
		return seen(w, http.StatusCreated, d)
	}
	return seen(w, http.StatusOK, d)
}

func removeDocument(c *documents.Collection, p *params, w http.ResponseWriter, r *http.Request) (any, error) {
	op := &documents.Op{Kind: documents.Remove}
	if err := conditions(r, op); err != nil {
		return nil, err
	}
	if op.Kind == documents.Create {
		return nil, request.Refuse(http.StatusBadRequest, "bad_header", "a removal does not take If-None-Match", "")
	}
	_, err := writeDocument(c, p, w, r, op)
	return status{http.StatusNoContent, nil}, err
}

func getDocument(c *documents.Collection, p *params, w http.ResponseWriter, r *http.Request) (any, error) {
	path, in := p.text("path"), p.q.Has("path")
	if err := p.end(); err != nil {
		return nil, err
	}
	load := c.Load
	if in {
		load = func(ctx context.Context, id string) (*documents.Document, error) { return c.LoadIn(ctx, path, id) }
	}
	d, err := load(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if r.Header.Get("If-None-Match") == etag(d.Version) {
		w.Header().Set("ETag", etag(d.Version))
		return status{http.StatusNotModified, nil}, nil
	}
	return seen(w, http.StatusOK, d)
}
