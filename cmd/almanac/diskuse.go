package main

import (
	"errors"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/query"
)

// diskUse returns what a status says of a disk, and whether there is anything to say: one that does not answer is said as silent,
// with the numbers of its last answer.
func diskUse(free, all int64, err error) (use query.DiskUse, known bool) {
	use = query.DiskUse{Free: uint64(max(free, 0)), Total: uint64(max(all, 0))}
	if silent := new(embedded.SilentDiskError); errors.As(err, &silent) {
		since := silent.Since.UTC()
		use.SilentSince = &since
		return use, true
	}
	return use, err == nil
}
