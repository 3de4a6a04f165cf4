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

// fits refuses a restore that cannot end: the files of a group of tables are laid into dir as a whole.
func fits(dir string, m *Manifest, only Only, free int64) error {
	most := int64(0)
	for i := range m.Groups {
		if len(only.tables(&m.Groups[i])) == 0 {
			continue
		}
		var bytes int64
		for _, f := range m.Groups[i].Files {
			bytes += f.Size
		}
		most = max(most, bytes)
	}
	if most > free {
		return fmt.Errorf("%w: the tables of %s are %s, and %s has %s free: nothing was restored. Make room and run it again, or restore onto another disk", ErrNoSpace, m.Name(), schemas.FormatBytes(float64(most)), dir, schemas.FormatBytes(float64(free)))
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
