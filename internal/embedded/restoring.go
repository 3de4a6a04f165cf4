package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// restoringName is a file that is there while a restore into the directory has not ended: what it holds is not whole.
const restoringName = "RESTORING"

// BackupsDir is where the engine of the data directory path keeps its own backups: it may write there, and so may we.
func BackupsDir(path string) string { return backupsBelow(filepath.Join(path, engineName)) }

// BackupsDir is where an engine that this process started keeps its own backups.
func (c *ClickHouse) BackupsDir() string { return backupsBelow(c.cfg.Dir) }

func backupsBelow(engineDir string) string { return filepath.Join(engineDir, "data", "backups") }

// BeginRestore marks the directory, and removes what a restore left there that did not end.
func (d *DataDir) BeginRestore() error {
	mark := filepath.Join(d.path, restoringName)
	if _, err := os.Stat(mark); err == nil {
		err := emptyOwnCold(filepath.Join(d.path, engineName))
		for _, name := range []string{natsName, engineName} {
			if err == nil {
				err = os.RemoveAll(filepath.Join(d.path, name))
			}
		}
		if err != nil {
			return fmt.Errorf("removing what a restore left that did not end: %w", err)
		}
		return nil
	}
	for _, name := range []string{natsName, engineName} {
		if _, err := os.Stat(filepath.Join(d.path, name)); err == nil {
			return fmt.Errorf("%w: %s has streams and tables: give a new or an empty directory by --data", ErrDirUsed, d.path)
		}
	}
	return writeFile(mark, []byte("almanac restore\n"))
}

// EndRestore takes the mark away: the directory is whole. The servers have ended, and what they wrote is on disk before the mark goes.
func (d *DataDir) EndRestore() error {
	unix.Sync()
	err := os.Remove(filepath.Join(d.path, restoringName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	unix.Sync() // else the mark may be there again after a loss of power, and a restore that is run again removes what came since
	return nil
}

// checkRestored refuses a directory into which a restore did not end.
func checkRestored(path string) error {
	if _, err := os.Stat(filepath.Join(path, restoringName)); err == nil {
		return fmt.Errorf("%w: %s: run `almanac restore` again, or give another directory by --data", ErrDirHalf, path)
	}
	return nil
}
