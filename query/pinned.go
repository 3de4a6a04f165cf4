package query

import (
	"strconv"
	"strings"
	"time"
)

// PinCursor returns the cursor of a list's next page together with the moment from which the times of
// its request were read, so that -1h means the same on every page. An empty one stays empty.
func PinCursor(cursor string, read time.Time) string {
	if cursor == "" {
		return ""
	}
	return strconv.FormatInt(read.UnixNano(), 36) + pin + cursor
}

// UnpinCursor takes such a cursor apart: times are read from the moment of its first page. Without a
// pin that is now.
func UnpinCursor(text string, now time.Time) (cursor string, read time.Time) {
	at, rest, ok := strings.Cut(text, pin)
	if ns, err := strconv.ParseInt(at, 36, 64); ok && err == nil {
		return rest, time.Unix(0, ns)
	}
	return text, now
}

// pin stands between the two. No cursor has it before anything that is not a number.
const pin = "~"
