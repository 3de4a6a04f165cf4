package operations

import (
	"net/http"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/access"
)

const documentRefusal = "DocumentRefusal"

var (
	docID      = Param{Name: "id", In: Path, Required: true, MaxBytes: 128, Help: "the id of a document"}
	docPath    = Param{Name: "path", Empty: true, Help: "`PATH` that the document must have (default: any)", Note: "; one under another path is not found, and not written (409 other_path)"}
	newPath    = helped(docPath, "`PATH` of a new document, up to 8 segments with / between; one that exists must have it")
	docMatch   = Param{Name: "If-Match", In: Header, Help: "the ETag that the document must have: its version; * for any"}
	docCreated = Param{Name: "created", Kind: Time, Help: "`TIME` at which a new document was created elsewhere (default: now)", Note: "; not after now. One that is there keeps its own"}
	underLock  = Param{Name: "lock", Kind: Token, Help: "`TOKEN` of the lock that is held; the write is refused where it was lost, and else renews it"}
	unlocking  = Param{Name: "unlock", Kind: Switch, Help: "release the lock with the write"}
	etag       = []string{"ETag"}
	replaced   = Answer{Code: http.StatusOK, Text: "Replaced", Type: "Document", Headers: etag}
	stored     = Answer{Code: http.StatusCreated, Text: "Stored", Type: "Document", Headers: etag}
	writing    = []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusLocked}
)

// Documents.
var (
	Documents = Operation{
		Tool: "documents", Method: http.MethodGet, Path: "/v1/documents/{topic}", Access: Reads, Refusal: documentRefusal,
		Summary: "Documents, the newest created first; with order=changed, changed_from or changed_to (which created_from and created_to do not go with) by their last change, the oldest first", Right: Right{Action: access.Read}, Rows: AllRows,
		Params: []Param{
			inTopic, counts(atMost("how many documents at most", documents.MaxLimit), documents.DefaultLimit), cursor,
			{Name: "path", Empty: true, Help: "`PATH` whose documents to list; '' for those that do not have a path (default: all documents)"},
			{Name: "below", Kind: Switch, Help: "list the documents of paths below --path too"},
			helped(where, "`FILTER` over columns and promoted fields"),
			{Name: "no_bodies", Kind: Switch, Help: "leave bodies out"},
			{Name: "order", Kind: Word, Words: []string{"created", "changed"}, Help: "created, the newest first; changed, by the last change, the oldest first"},
			flagged(helped(named(from, "changed_from"), "`TIME` from which it was changed"), "from"),
			flagged(helped(named(to, "changed_to"), "`TIME` before which it was changed"), "to"),
			flagged(helped(named(from, "created_from"), "`TIME` from which it was created"), "from"),
			flagged(helped(named(to, "created_to"), "`TIME` before which it was created"), "to"),
		},
		Answers: ok("DocumentPage"),
	}
	CreateDocument = Operation{
		Method: http.MethodPost, Path: "/v1/documents/{topic}", Summary: "Store a document under an id that is generated", Right: Right{Action: access.Change}, Access: Writes, Refusal: documentRefusal,
		Params: []Param{inTopic, underLock, unlocking, newPath, docCreated}, Body: sends("AnyObject"), Answers: []Answer{stored}, Refused: writing,
	}
	BatchDocuments = Operation{
		Method: http.MethodPost, Path: "/v1/documents/{topic}/batch", Summary: "Change up to 500 documents, all or none", Right: Right{Action: access.Change}, Access: Writes, Refusal: documentRefusal,
		Params: []Param{inTopic}, Body: sends("DocumentBatch"), Refused: writing,
		Answers: []Answer{{Code: http.StatusOK, Text: "The version that each change made", Type: "DocumentPage"}},
	}
	LoadDocuments = Operation{
		Method: http.MethodPost, Path: "/v1/documents/{topic}/load", Summary: "Up to 1,000 documents by their ids, in their order, null where there is none", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads, Refusal: documentRefusal,
		Params: []Param{inTopic}, Body: sends("LoadRequest"), Answers: ok("DocumentPage"),
	}
	Document = Operation{
		Tool: "document", Method: http.MethodGet, Path: "/v1/documents/{topic}/{id}", Summary: "One document", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads, Refusal: documentRefusal,
		Params: []Param{inTopic, docID, docPath, ifNone},
		Answers: []Answer{
			{Code: http.StatusOK, Type: "Document", Headers: etag},
			{Code: http.StatusNotModified, Text: "It still has the ETag of If-None-Match"},
		},
	}
	PutDocument = Operation{
		Method: http.MethodPut, Path: "/v1/documents/{topic}/{id}", Summary: "Store a document, or replace its body", Right: Right{Action: access.Change}, Access: Writes, Refusal: documentRefusal,
		Params: []Param{inTopic, docID, underLock, unlocking, newPath, docCreated, docMatch, ifNone},
		Body:   sends("AnyObject"), Answers: []Answer{replaced, stored}, Refused: writing,
	}
	RemoveDocument = Operation{
		Method: http.MethodDelete, Path: "/v1/documents/{topic}/{id}", Summary: "Remove a document", Right: Right{Action: access.Change}, Access: Writes, Refusal: documentRefusal,
		Params:  []Param{inTopic, docID, underLock, unlocking, docPath, docMatch},
		Answers: []Answer{{Code: http.StatusNoContent, Text: "Removed"}}, Refused: writing,
	}
	DocumentHistory = Operation{
		Tool: "document_history", Method: http.MethodGet, Path: "/v1/documents/{topic}/{id}/history", Summary: "All versions of a document, the oldest first", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads, Refusal: documentRefusal,
		Params: []Param{inTopic, docID}, Answers: ok("DocumentPage"),
	}
	DocumentLock = Operation{
		Method: http.MethodGet, Path: "/v1/documents/{topic}/{id}/lock", Summary: "Who holds the lock on an id", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads, Refusal: documentRefusal,
		Params: []Param{inTopic, docID}, Answers: ok("DocumentLock"),
	}
	LockDocument = Operation{
		Method: http.MethodPost, Path: "/v1/documents/{topic}/{id}/lock", Summary: "Lock an id for a time, or renew the lock that a token names", Right: Right{Action: access.Change}, Access: Writes, Refusal: documentRefusal,
		Params: []Param{inTopic, docID}, Body: sends("LockRequest"), Answers: ok("DocumentLock"), Refused: []int{http.StatusLocked},
	}
	UnlockDocument = Operation{
		Method: http.MethodDelete, Path: "/v1/documents/{topic}/{id}/lock", Summary: "Release the lock that a token names", Right: Right{Action: access.Change}, Access: Writes, Refusal: documentRefusal,
		Params: []Param{
			inTopic, docID,
			{Name: "token", Kind: Token, Help: "`TOKEN` of the lock"},
			{Name: "force", Kind: Switch, Help: "release whatever lock is held"},
		},
		Answers: []Answer{{Code: http.StatusNoContent, Text: "Released"}}, Refused: []int{http.StatusLocked},
	}
)
