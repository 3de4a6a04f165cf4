package documents

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrExists: a document with this id is there.
	ErrExists = errors.New("the document exists")
	// ErrNotFound: there is no document with this id, under this path.
	ErrNotFound = errors.New("no such document")
	// ErrVersion: the document has another version than the caller named.
	ErrVersion = errors.New("the document has another version")
	// ErrPath: the document is under another path than the caller named.
	ErrPath = errors.New("the document is under another path")
	// ErrFull: the topic or its front takes no more documents.
	ErrFull = errors.New("no room for more documents")
	// ErrArchive: the body is archived, and the archive could not be read.
	ErrArchive = errors.New("the archive cannot be read now")
	// ErrLostFront: DOCS lost records.
	ErrLostFront = errors.New("the stream DOCS lost records")
	// ErrKind: the topic is of another kind.
	ErrKind = errors.New("not a topic of documents")
	// ErrLocked: another holds the lock on the id, or the lock that a write names is no
	// longer held. Nothing was written.
	ErrLocked = errors.New("the document is locked")
	// ErrBusy: others changed the document again and again. Nothing was written.
	ErrBusy = errors.New("the document was changed by others each time")
)

// VersionError is an ErrVersion that says what is there.
type VersionError struct {
	ID   string
	Want uint64
	Have uint64
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%v: %q is at version %d, and not at %d; load it and decide again", ErrVersion, e.ID, e.Have, e.Want)
}

// Is makes it an ErrVersion.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }

// PathError is an ErrPath that says both paths.
type PathError struct {
	ID         string
	Want, Have string
}

func (e *PathError) Error() string {
	return fmt.Sprintf("%v: %q is under path %q, and not under %q; a document keeps its path: write it through that, or give this one another id", ErrPath, e.ID, e.Have, e.Want)
}

// Is makes it an ErrPath.
func (e *PathError) Is(target error) bool { return target == ErrPath }

// MemberError is why one change of a batch is refused.
type MemberError struct {
	Index int // in the batch, from 0
	ID    string
	Err   error
}

// BatchError names the changes for which a batch was refused. Nothing of it was written.
// It is each of their errors.
type BatchError struct{ Members []MemberError }

func (e *BatchError) Error() string {
	first := e.Members[0]
	text := fmt.Sprintf("nothing of the batch was written: change %d, of %q: %v", first.Index+1, first.ID, first.Err)
	if more := len(e.Members) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more of its changes are refused", more)
	}
	return text
}

// Unwrap returns the errors of the members.
func (e *BatchError) Unwrap() []error {
	out := make([]error, len(e.Members))
	for i := range e.Members {
		out[i] = e.Members[i].Err
	}
	return out
}

// LockError is an ErrLocked that says who holds the lock.
type LockError struct {
	ID string
	// Token is that of the lock which the caller named; 0: it named none.
	Token uint64
	// Holder is the lock that is held now; nil: none is.
	Holder *Lock
}

func (e *LockError) Error() string {
	holder := "no lock is held on it now"
	if h := e.Holder; h != nil {
		holder = fmt.Sprintf("%q holds it until %s, under token %d", h.By, h.Until.Format(time.RFC3339Nano), h.Token)
	}
	if e.Token != 0 {
		return fmt.Sprintf("%v: %q: the lock %d was lost, and %s; load the document and lock it again", ErrLocked, e.ID, e.Token, holder)
	}
	return fmt.Sprintf("%v: %q: %s", ErrLocked, e.ID, holder)
}

// Is makes it an ErrLocked.
func (e *LockError) Is(target error) bool { return target == ErrLocked }
