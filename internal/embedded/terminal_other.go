//go:build !linux

package embedded

import (
	"errors"
	"os"
)

// terminal is not built for this system.
func terminal() (ours, theirs *os.File, err error) {
	return nil, nil, errors.New("opening a terminal is only built for Linux")
}
