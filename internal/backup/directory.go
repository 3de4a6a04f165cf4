package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Directory is a directory of backups.
type Directory string

const tempPrefix = "writing-"

// At is a file's path.
func (d Directory) At(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

func (d Directory) far() bool { return false }

func (d Directory) hold(context.Context) (hold, error) {
	if err := os.MkdirAll(d.At(objectsDir), 0o700); err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	f, err := lockFile(d.At(lockName))
	if err != nil {
		return nil, err
	}
	if err := d.sweepTemps(); err != nil {
		return nil, errors.Join(fmt.Errorf("backup: %w", err), f.Close())
	}
	return fileLock{f}, nil
}

// fileLock is a lock that ends with the process.
type fileLock struct{ f *os.File }

func (l fileLock) still(context.Context) error   { return nil }
func (l fileLock) yet(context.Context) error     { return nil }
func (l fileLock) release(context.Context) error { return l.f.Close() }

func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: another process has %s: wait for its end", ErrBusy, path)
		}
		return nil, fmt.Errorf("backup: locking %s: %w", path, err)
	}
	return f, nil
}

// sweepTemps removes what a killed process was writing.
func (d Directory) sweepTemps() error {
	return walk(string(d), func(_, path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), tempPrefix) {
			return os.Remove(path)
		}
		return err
	})
}

// put gives a file its name only once it is whole and on disk. Nothing writes to an object again.
func (d Directory) put(_ context.Context, name string, body io.ReadSeeker, _ int64) error {
	path, mode := d.At(name), os.FileMode(0o600)
	if strings.HasPrefix(name, objectsDir+"/") {
		mode = 0o400
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fullDisk(path, fmt.Errorf("backup: %w", err))
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix)
	if err != nil {
		return fullDisk(path, fmt.Errorf("backup: %w", err))
	}
	_, err = io.Copy(f, body)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fullDisk(path, fmt.Errorf("backup: writing %s: %w", path, err))
	}
	return nil
}

// fullDisk says what to do where an error is that of a full disk.
func fullDisk(path string, err error) error {
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return err
	}
	return fmt.Errorf("%w: the disk of %s is full: %w. Make room there; older backups are removed by almanac backup DEST --prune --keep N. Then run it again: what was written is not written again", ErrNoSpace, path, err)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}

func (d Directory) open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(d.At(name))
}

func (d Directory) list(_ context.Context, folder string, deep bool, f func(name string, size int64)) error {
	err := walk(d.At(folder), func(root, path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && !deep:
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		f(filepath.ToSlash(filepath.Join(folder, name)), info.Size())
		return err
	})
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// walk walks through a directory that may be named by a link, which WalkDir would not follow: then
// it would seem to be empty.
func walk(dir string, f func(root, path string, e fs.DirEntry, err error) error) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error { return f(root, path, e, err) })
}

func (d Directory) remove(_ context.Context, name string) error {
	if err := os.Remove(d.At(name)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}
