package schemas

import (
	"errors"
	"fmt"
)

// StreamRestoring is the empty stream that says that a backup is being put into a server. Its metadata name the backup. It is made before
// anything else is, and removed once all is whole.
const StreamRestoring = "ALMANAC_RESTORING"

// metadataRestoring names the backup in the metadata of StreamRestoring, and in those of the registry's bucket until the restore has ended.
const metadataRestoring = "almanac_restoring"

// ErrRestoring: a restore was begun on a server, and has not ended.
var ErrRestoring = errors.New("a restore has not ended")

// MarkRestoring adds to metadata which backup is being restored.
func MarkRestoring(metadata map[string]string, of string) { metadata[metadataRestoring] = of }

// UnmarkRestoring takes that out of them.
func UnmarkRestoring(metadata map[string]string) { delete(metadata, metadataRestoring) }

// RestoringOf is the backup that metadata name; empty: none.
func RestoringOf(metadata map[string]string) string { return metadata[metadataRestoring] }

// CheckRestored refuses metadata that name a backup: not all of it is there yet. Server is where they are.
func CheckRestored(metadata map[string]string, server string) error {
	if of := RestoringOf(metadata); of != "" {
		return fmt.Errorf("%w: the backup %s is being restored into NATS at %s. Wait until that ends, or run the same `almanac restore` again if it was stopped", ErrRestoring, of, server)
	}
	return nil
}

// CheckBucket refuses a bucket of another format, and one of a server on which a restore has not ended.
func CheckBucket(metadata map[string]string, server string) error {
	if err := CheckFormat(metadata, server); err != nil {
		return err
	}
	return CheckRestored(metadata, server)
}
