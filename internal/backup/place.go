package backup

import (
	"context"
	"io"
)

// Place is where backups are kept: a directory, or a bucket of an object store. Names have slashes. A file is there whole, or it is not there.
type Place interface {
	// At is how a file is called outside, "" the place itself.
	At(name string) string
	// far says that a file may take seconds to come or go.
	far() bool
	// hold keeps other processes from writing, and removes what a killed one left half-written. ErrBusy: another process writes.
	hold(ctx context.Context) (hold, error)
	put(ctx context.Context, name string, body io.ReadSeeker, size int64) error
	// open wraps fs.ErrNotExist where there is no such file.
	open(ctx context.Context, name string) (io.ReadCloser, error)
	// list calls f with the files of a folder: with those of its folders too if it is deep.
	list(ctx context.Context, folder string, deep bool, f func(name string, size int64)) error
	remove(ctx context.Context, name string) error
}

// hold is the right to write.
type hold interface {
	// still reports why it is lost, and yet too: that asks less, and may be called before each file.
	still(ctx context.Context) error
	yet(ctx context.Context) error
	release(ctx context.Context) error
}
