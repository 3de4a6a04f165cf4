package tables

import (
	"regexp"
	"slices"
)

// What ClickHouse answers when the bytes of a part are not those that it wrote.
var codesOfDamage = []int{
	33,  // CANNOT_READ_ALL_DATA
	40,  // CHECKSUM_DOESNT_MATCH
	246, // CORRUPTED_DATA
	271, // CANNOT_DECOMPRESS
	432, // UNKNOWN_CODEC
}

var damagedPart = regexp.MustCompile(`while reading from part \S*/([^/\s]+)/ in table ([^\s()]+)`)

// DamagedPart names the part that ClickHouse could not read because its bytes on disk
// are damaged, and its table; "" for any other refusal.
func (e *Error) DamagedPart() (table, part string) {
	if !slices.Contains(codesOfDamage, e.Code) {
		return "", ""
	}
	if m := damagedPart.FindStringSubmatch(e.Text); m != nil {
		return m[2], m[1]
	}
	return "", ""
}
