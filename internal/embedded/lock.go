package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tryLock opens path and takes the exclusive lock on it; false when another open file has it.
func tryLock(path string) (*os.File, bool, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, true, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, false, nil
	}
	return nil, false, err
}

// predecessorWait is how long a start waits for the engine of a killed predecessor to be gone. Giving back a few
// gigabytes of memory takes the kernel well under a second.
const predecessorWait = 10 * time.Second

// lockEngine takes the lock that every engine child inherits. It is free only when the last of them is gone, whatever
// became of the parent, so that no two engines ever write to one directory.
func lockEngine(ctx context.Context, path string) (*os.File, error) {
	var f *os.File
	var ok bool
	var err error
	patiently(ctx, predecessorWait, func() bool {
		f, ok, err = tryLock(path)
		return ok || err != nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("locking the engine's directory by %s: %w", path, err)
	case !ok:
		return nil, fmt.Errorf("%w: another engine still holds %s: stop that process", ErrDirBusy, path)
	}
	return f, nil
}
