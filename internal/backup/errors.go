package backup

import "errors"

var (
	// ErrTorn means that a backup was not written to its end, or is none.
	ErrTorn = errors.New("not a whole backup")
	// ErrFormat means that a backup is one of another Almanac's format.
	ErrFormat = errors.New("a backup of another format")
	// ErrDamaged means that a file of a backup does not have the bytes that were written.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrRemoved means that a backup was removed while it was read.
	ErrRemoved = errors.New("the backup was removed meanwhile, as --keep does")
	// ErrNotOurs means that a backup cannot follow those that a place has.
	ErrNotOurs = errors.New("not the place for this backup")
	// ErrNoSpace means that a copy would fill the disk.
	ErrNoSpace = errors.New("no space for a copy")
	// ErrNotEmpty means that the target of a restore has something of its own.
	ErrNotEmpty = errors.New("the target is not empty")
	// ErrNoMonth means that one month alone cannot be restored of a topic, or that it is not there.
	ErrNoMonth = errors.New("no month alone")
	// ErrOldLedger means that a ledger does not know what was erased since a backup.
	ErrOldLedger = errors.New("the ledger does not go on where the backups end")
	// ErrBusy means that another process writes into the same directory of backups.
	ErrBusy = errors.New("another backup is under way")
	// ErrObjectStore means that a bucket did not do as it was asked.
	ErrObjectStore = errors.New("object store")
	// ErrSnapshot means that a snapshot of a stream did not come whole.
	ErrSnapshot = errors.New("snapshot of a stream")
)
