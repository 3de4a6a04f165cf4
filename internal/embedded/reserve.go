package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A start needs room: a lock, addresses, the servers' own files. On a disk that is full there is
// none, and then nothing could be read either. So a directory keeps a file of zeros, made while
// there is plenty, which a start gives up when the disk is short.

const (
	reserveName = "reserve"
	// ReserveBytes is its size: a start and the first minutes of both servers take some 100 KiB, and ClickHouse
	// refuses to merge or sort below some MiB.
	ReserveBytes = 64 << 20
)

// keepReserve makes the reserve where the disk has much more room than that.
func keepReserve(dir string, free int64) error {
	name := filepath.Join(dir, reserveName)
	if info, err := os.Stat(name); err == nil && info.Size() >= ReserveBytes || free < DefaultMinFreeBytes+ReserveBytes {
		return nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("keeping room for a start on a full disk: %w", err)
	}
	block := make([]byte, 1<<20)
	for n := 0; n < ReserveBytes && err == nil; n += len(block) {
		_, err = f.Write(block) // written and not only declared: a file with holes has no room
	}
	return errors.Join(err, f.Close())
}

// useReserve gives the reserve's room to a start.
func useReserve(dir string) error {
	err := os.Remove(filepath.Join(dir, reserveName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
