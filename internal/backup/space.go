package backup

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/almanac-events/almanac/schemas"
)

// fullShare is how much of what is free a copy may take of the disk on which ClickHouse has its own backups, which is
// that of its tables as a rule: events come meanwhile, and a full disk refuses them.
const fullShare = 0.8

// space refuses a copy of tables that would fill the disk. Of an earlier backup's files none is written again,
// but for those that a merge replaced: how many is not known before.
func space(dir, group string, holds, known, free int64) error {
	if need := holds - known; float64(need) > fullShare*float64(free) {
		return fmt.Errorf("%w: ClickHouse would write up to %s of tables %s into %s, where %s are free, and a full disk takes no events: nothing was copied. Make room, or let backups.allowed_path lie on another disk",
			ErrNoSpace, schemas.FormatBytes(float64(need)), group, dir, schemas.FormatBytes(float64(free)))
	}
	return nil
}

// freeIn is how many bytes a directory's disk has for us.
func freeIn(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("backup: how much is free in %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:gosec,unconvert // both are of other types on other systems
}
