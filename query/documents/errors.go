package documents

import "errors"

// ErrNoRow: a stub names a row that is not there.
var ErrNoRow = errors.New("the row of a document is missing")
