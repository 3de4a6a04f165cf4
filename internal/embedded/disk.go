package embedded

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// FreeBytes is the space an ordinary user may still fill on the file system that holds path. A start waits for it, for startDiskWait.
func FreeBytes(path string) (int64, error) {
	free, _, err := fileSystems.bytes(path, startDiskWait)
	return free, err
}

// DiskBytes is that space, and what the file system has in all. Where it does not answer within diskWait the error is a
// SilentDiskError, and the numbers are those of its last answer.
func DiskBytes(path string) (free, all int64, err error) { return fileSystems.bytes(path, diskWait) }

// SilentDiskError is of a file system that does not answer, as one whose server of files is away.
type SilentDiskError struct {
	Path  string
	Since time.Time
}

func (e *SilentDiskError) Error() string {
	return fmt.Sprintf("the file system of %s does not answer since %s: look at its mount and at its disk", e.Path, e.Since.UTC().Format(time.RFC3339))
}

// diskWait is how long a file system may take to say how full it is. One on a disk takes microseconds; who asks for a status
// waits 2 s in all.
const diskWait = 500 * time.Millisecond

// startDiskWait is how long it may take at a start, which a machine that is busy must not end.
const startDiskWait = 10 * time.Second

// fileSystems are those that this process asks. They are of the process, as a question that hangs holds one of its threads.
var fileSystems = disks{ask: statfs, of: map[string]*disk{}}

// disks ask file systems. At most one question is under way for a path, and those who ask meanwhile wait for its answer: a
// mount that hangs holds one goroutine. Paths are directories of the settings and those above, so they are few.
type disks struct {
	ask func(path string) (free, all int64, err error)

	mu sync.Mutex
	of map[string]*disk
}

// disk is one path: the question under way, and the last answer.
type disk struct {
	now       *diskAsk
	free, all int64
}

// diskAsk is one question.
type diskAsk struct {
	since     time.Time
	done      chan struct{}
	free, all int64 // read after done, as err
	err       error
}

func (d *disks) bytes(path string, within time.Duration) (free, all int64, err error) {
	a := d.asked(path)
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-a.done:
		return a.free, a.all, a.err
	case <-timer.C:
	}
	select {
	case <-a.done: // a process that stood still finds both at once
		return a.free, a.all, a.err
	default:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.of[path]
	return last.free, last.all, &SilentDiskError{Path: path, Since: a.since}
}

// asked returns the question under way, or begins one.
func (d *disks) asked(path string) *diskAsk {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.of[path]
	if one == nil {
		one = &disk{}
		d.of[path] = one
	}
	if one.now != nil {
		return one.now
	}
	a := &diskAsk{since: time.Now(), done: make(chan struct{})}
	one.now = a
	go func() {
		a.free, a.all, a.err = d.ask(path)
		d.mu.Lock()
		defer d.mu.Unlock()
		if one.now = nil; a.err == nil {
			one.free, one.all = a.free, a.all
		}
		close(a.done)
	}()
	return a
}

// statfs asks one file system. It may never return.
func statfs(path string) (free, all int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, 0, fmt.Errorf("asking for the free space of %s: %w", path, err)
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), nil // the types differ between systems
}

// usedBytes is the size of all files below dir; files that vanish meanwhile count as nothing.
func usedBytes(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // an estimate: what cannot be read is not counted
		}
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// humanBytes prints a size as people say it.
func humanBytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, suffix := float64(n), ""
	for _, s := range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		value, suffix = value/unit, s
		if value < unit {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", value, suffix)
}
