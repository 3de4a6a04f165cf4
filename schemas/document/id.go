package document

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// Limits of ids and paths.
const (
	MaxIDBytes       = 128
	MaxPathBytes     = 255
	MaxPathSegments  = 8
	MaxSegmentBytes  = 64
	freeIDLength     = 12 // of an id that is generated where free ids are taken
	laneIDCharacters = 2  // of a lane's own name
)

// plain reports whether a text has characters of [A-Za-z0-9_-] alone. Every record that is read is
// checked by it, a million headers in a walk of the front.
func plain(s string) bool {
	for _, c := range []byte(s) {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return s != ""
}

// NewID makes a random id as the topic's documents have them.
func NewID(s schemas.Documents) string {
	n := freeIDLength
	if s.IDs == schemas.IDsGenerated {
		n = s.IDLength
	}
	b := make([]byte, (n*6+7)/8)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)[:n]
}

// CheckID reports why a topic does not take an id.
func CheckID(s schemas.Documents, id string) error {
	switch {
	case id == "" || len(id) > MaxIDBytes:
		return fmt.Errorf("%w: it has %d characters, it must have 1 to %d", ErrID, len(id), MaxIDBytes)
	case !plain(id):
		return fmt.Errorf("%w: %q has other characters than [A-Za-z0-9_-]", ErrID, id)
	case s.IDs == schemas.IDsGenerated && len(id) != s.IDLength:
		return fmt.Errorf("%w: %q has %d characters, ids of this topic have %d", ErrID, id, len(id), s.IDLength)
	}
	return nil
}

// Lane returns the lane of an id in a topic.
func Lane(t *schemas.Topic, id string) int { return t.DocumentLane(id) }

// CheckPath reports why a text is not a path. The empty one is: it is the root.
func CheckPath(path string) error {
	if path == "" {
		return nil
	}
	if len(path) > MaxPathBytes {
		return fmt.Errorf("%w: it has %d bytes, the limit is %d", ErrPath, len(path), MaxPathBytes)
	}
	segments := strings.Split(path, "/")
	if len(segments) > MaxPathSegments {
		return fmt.Errorf("%w: %q has %d segments, the limit is %d", ErrPath, path, len(segments), MaxPathSegments)
	}
	for _, s := range segments {
		if len(s) > MaxSegmentBytes || !plain(s) {
			return fmt.Errorf("%w: segment %q of %q must be 1 to %d characters of [A-Za-z0-9_-]", ErrPath, s, path, MaxSegmentBytes)
		}
	}
	return nil
}
