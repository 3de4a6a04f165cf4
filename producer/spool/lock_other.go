//go:build !unix

package spool

import (
	"errors"
	"fmt"
	"os"
)

// lock refuses: without flock two processes could send each other's frames.
func lock(path string) (*os.File, error) {
	return nil, fmt.Errorf("locking %s: %w: a spool needs flock, which this system does not have", path, errors.ErrUnsupported)
}
