package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// What a start would refuse can be asked before it, with nothing written.

// CheckDataDir returns why OpenDataDir would refuse a directory, and what it would take with a warning (DataDir.Short). One
// that another process has is neither.
func CheckDataDir(path string) (short, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		at, err := mayMake(path)
		if err != nil {
			return nil, fmt.Errorf("creating the data directory: %w; name another by --data", err)
		}
		return nil, checkSpace(at, 0)
	} else if err != nil {
		return nil, fmt.Errorf("the data directory: %w; name another by --data", err)
	}
	if err := errors.Join(checkOurs(path), checkRestored(path)); err != nil {
		return nil, err
	}
	if err := unix.Access(path, unix.W_OK|unix.X_OK); err != nil {
		return nil, fmt.Errorf("the data directory %s is not writable for this user: %w", path, err)
	}
	if err = checkSpace(path, 0); errors.Is(err, ErrDiskSpace) && !isNew(path) {
		return err, nil
	}
	return nil, err
}

// CheckColdDir returns why the engine of a data directory would refuse a cold directory.
func CheckColdDir(data, configured string) error {
	engine := filepath.Join(data, engineName)
	had, err := readCold(filepath.Join(engine, coldRecord))
	if err != nil {
		return err
	}
	path, err := coldPath(engine, configured, had.Path)
	if err != nil || path == "" {
		return err
	}
	if had.ID != "" && !had.New {
		return checkMark(path, had.ID)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if _, err := mayMake(path); err != nil {
			return fmt.Errorf("%w: %w; name another by cold_dir", ErrColdDir, err)
		}
		return nil
	}
	if had.ID != "" {
		return nil // it was begun, and may hold its mark
	}
	return emptyCold(path)
}

// checkMark refuses a cold directory that is not the one that the engine had.
func checkMark(path, id string) error {
	mark, err := os.ReadFile(filepath.Join(path, coldMark))
	if err != nil || strings.TrimSpace(string(mark)) != id {
		return fmt.Errorf("%w: %s is not the one that has the rows of this Almanac's cold shards (its file %s is missing or another's): mount its disk there, or say by cold_dir where it is now", ErrColdDir, path, coldMark)
	}
	return nil
}

// CheckPort returns why a server could not listen on a port of a host; 0 is any port.
func CheckPort(host string, port int) error {
	_, err := claimPort(host, port)
	return err
}

// mayMake returns the nearest directory above path that is there, if path can be made below it.
func mayMake(path string) (string, error) {
	at := filepath.Dir(path)
	for {
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return "", fmt.Errorf("%s is a file", at)
		case err == nil:
			if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
				return "", fmt.Errorf("nothing can be made in %s: %w", at, err)
			}
			return at, nil
		case !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at):
			return "", err
		}
		at = filepath.Dir(at)
	}
}
