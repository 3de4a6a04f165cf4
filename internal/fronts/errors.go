package fronts

import "errors"

var (
	// ErrConflict: the key's last record is not the one that was expected. Nothing was
	// written; read it again.
	ErrConflict = errors.New("another record came first")
	// ErrNotFound: the key does not have a record.
	ErrNotFound = errors.New("no record")
	// ErrFull: the stream takes no more of this until the cleaner freed some of it. Nothing was
	// written.
	ErrFull = errors.New("the front is full; `almanac streams` shows who holds it, `almanac streams apply` makes it larger")
	// ErrStore: NATS cannot store, though the stream has room: its disk, its account or the server is at its
	// limit. Nothing was written.
	ErrStore = errors.New("NATS cannot store more: its disk, its account or its max_file_store is at its limit; `almanac doctor` says which")
	// ErrUnknown: the answer did not come in time, and it could not be found out whether
	// the record was written. Read the key again.
	ErrUnknown = errors.New("it is not known whether the record was written: load it again to see")
	// ErrLost: a front does not have what was routed from it.
	ErrLost = errors.New("the front lost records")
	// ErrReplaced: what is not a record took the place of a key's records (*ReplacedError).
	ErrReplaced = errors.New("the record was replaced by what is none")
	// ErrCut: some of a batch was lost on its way each time that it was sent. Nothing was
	// written; write it again.
	ErrCut = errors.New("some of the batch was lost on its way, and nothing was written: write it again")
	// ErrTooLarge: the record is larger than the stream takes. Nothing was written.
	ErrTooLarge = errors.New("record too large")
)
