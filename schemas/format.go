package schemas

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Format is the number of what Almanac keeps: streams, registry, tables, a data directory. It changes when an Almanac of
// another number could not read it, or would harm it.
const Format = 6

// ErrFormat: a server or a directory has what an Almanac of another format keeps.
var ErrFormat = errors.New("another format")

// EngineComment is the comment of the database that names an engine: it has the number of the format of the tables there.
func EngineComment() string {
	return engineFormat + strconv.Itoa(Format) + ": names this server, and any other refuses the statements that name it"
}

// engineFormat begins that comment.
const engineFormat = "almanac format "

// metadataFormat names the number in the metadata of the registry's bucket.
const metadataFormat = "almanac_format"

// FormatMetadata says the number of this Almanac.
func FormatMetadata() map[string]string {
	return map[string]string{metadataFormat: strconv.Itoa(Format)}
}

// FormatOf is the number in metadata, as it was written. Metadata of a bucket that was made by hand lacks it.
func FormatOf(metadata map[string]string) (number string, ok bool) {
	number, ok = metadata[metadataFormat]
	return number, ok
}

// CheckFormat refuses a bucket whose metadata have another number than this Almanac, with both. Server is where the bucket is.
func CheckFormat(metadata map[string]string, server string) error {
	if got, ok := FormatOf(metadata); ok && got != strconv.Itoa(Format) {
		return fmt.Errorf("%w: NATS at %s has format %q, this Almanac reads format %d: run the Almanac that made it, or give this one a NATS and a ClickHouse of its own", ErrFormat, server, got, Format)
	}
	return nil
}

// EngineFormat is the number in such a comment. One that was made by hand lacks it.
func EngineFormat(comment string) (number string, ok bool) {
	number, ok = strings.CutPrefix(comment, engineFormat)
	number, _, _ = strings.Cut(number, ":")
	return number, ok
}
