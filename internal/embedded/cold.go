package embedded

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The storage policy of an engine that has a second directory, and its volumes. The first volume has the name that
// ClickHouse gives its only one, so that a table may change over to the policy.
const (
	StoragePolicy = "almanac"
	VolumeCold    = "cold"
)

// The names of a cold directory's files: what the engine writes, whose directory it is, and the lock.
const (
	coldData = "data"
	coldMark = "COLD"
	coldLock = "engine.lock"
	// coldRecord is the file beside the engine's data that says which directory it has.
	coldRecord = "cold.json"
)

// coldDir is the second directory of an engine, as coldRecord keeps it. A table's policy names the disk for good, so an
// engine that ever had one does not start without it: it would show tables without the rows there.
type coldDir struct {
	Path string `json:"path"`
	ID   string `json:"id"`
	// New: the mark may not be written yet.
	New bool `json:"new,omitempty"`
}

// claimCold takes the cold directory that is configured, or that the engine had before; none of both: an empty path.
func (c *ClickHouse) claimCold(ctx context.Context) error {
	record := filepath.Join(c.cfg.Dir, coldRecord)
	had, err := readCold(record)
	if err != nil {
		return err
	}
	path, err := coldPath(c.cfg.Dir, c.cfg.ColdDir, had.Path)
	if err != nil || path == "" {
		return err
	}
	if had.ID == "" {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("%w: %w; name another by cold_dir", ErrColdDir, err)
		}
		if err := emptyCold(path); err != nil {
			return err
		}
		had = coldDir{ID: strings.ToLower(rand.Text()), New: true}
	}
	if had.New {
		had.Path = path
		if err := writeCold(record, had); err != nil {
			return err
		}
		if err = os.MkdirAll(path, 0o700); err == nil {
			err = writeFile(filepath.Join(path, coldMark), []byte(had.ID+"\n"))
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrColdDir, err)
		}
	}
	if err := checkMark(path, had.ID); err != nil {
		return err
	}
	if c.coldLock, err = lockEngine(ctx, filepath.Join(path, coldLock)); err != nil {
		return err
	}
	if had.New || had.Path != path {
		had.Path, had.New = path, false
		if err := writeCold(record, had); err != nil {
			return err
		}
	}
	c.cold = filepath.Join(path, coldData)
	return makeDirs(c.cold)
}

// coldPath is the directory that is meant: what is configured before what the engine had. It and the engine's own
// must not lie in each other.
func coldPath(dir, configured, had string) (string, error) {
	if configured == "" {
		return had, nil
	}
	path, err := filepath.Abs(configured)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrColdDir, err)
	}
	for _, pair := range [][2]string{{dir, path}, {path, dir}} {
		if within, err := filepath.Rel(pair[0], pair[1]); err == nil && within != ".." && !strings.HasPrefix(within, "../") {
			return "", fmt.Errorf("%w: %s and the engine's own directory %s lie in each other; name one on another disk by cold_dir", ErrColdDir, path, dir)
		}
	}
	return path, nil
}

// emptyCold refuses a directory that has something: another Almanac's rows, which this engine would take for left over.
func emptyCold(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrColdDir, err)
	}
	for _, e := range entries {
		if e.Name() != "lost+found" {
			return fmt.Errorf("%w: %s holds %q, and is to be empty at first; name another by cold_dir", ErrColdDir, path, e.Name())
		}
	}
	return nil
}

// emptyOwnCold empties the cold directory of an engine, if it has its mark: what is there may be another's.
func emptyOwnCold(engineDir string) error {
	had, err := readCold(filepath.Join(engineDir, coldRecord))
	if err != nil || had.Path == "" {
		return err
	}
	mark, err := os.ReadFile(filepath.Join(had.Path, coldMark))
	if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(string(mark)) != had.ID {
		return nil
	}
	for _, name := range []string{coldData, coldLock, coldMark} { // the mark last: while it is there, this can be done again
		if err == nil {
			err = os.RemoveAll(filepath.Join(had.Path, name))
		}
	}
	return err
}

func readCold(file string) (had coldDir, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return had, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &had)
	}
	if err != nil {
		return had, fmt.Errorf("%w: reading which one the engine has: %s: %w", ErrColdDir, file, err)
	}
	return had, nil
}

func writeCold(file string, c coldDir) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return writeFile(file, append(text, '\n'))
}
