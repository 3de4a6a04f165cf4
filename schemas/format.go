package schemas

import "strconv"

// Format is the number of what Almanac keeps: streams, registry, tables, a data directory. It changes when an Almanac of
// another number could not read it, or would harm it.
const Format = 5

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
