package embedded

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// FreeBytes is the space an ordinary user may still fill on the file system that holds path.
func FreeBytes(path string) (int64, error) {
	free, _, err := DiskBytes(path)
	return free, err
}

// DiskBytes is that space, and what the file system has in all.
func DiskBytes(path string) (free, all int64, err error) {
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
