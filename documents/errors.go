package documents

import (
	"errors"
	"fmt"
)

var (
	// ErrExists: a document with this id is there.
	ErrExists = errors.New("the document exists")
	// ErrNotFound: there is no document with this id, under this path.
	ErrNotFound = errors.New("no such document")
	// ErrVersion: the document has another version than the caller named.
	ErrVersion = errors.New("the document has another version")
	// ErrFull: the topic or its front takes no more documents.
	ErrFull = errors.New("no room for more documents")
	// ErrArchive: the body is archived, and the archive could not be read.
	ErrArchive = errors.New("the archive cannot be read now")
	// ErrLostFront: DOCS lost records.
	ErrLostFront = errors.New("the stream DOCS lost records")
	// ErrKind: the topic is of another kind.
	ErrKind = errors.New("not a topic of documents")
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
