package schemas

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseTime reads a time as RFC 3339 has it, and also without a zone (then UTC), with
// a zone without a colon (+0000), and with a space in place of the T: ISO 8601 as
// programs write it.
func ParseTime(text string) (time.Time, error) {
	for _, layout := range ISOLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.80q is not a time; write it as 2026-11-23T10:00:00Z", text)
}

// ISOLayouts are what ParseTime takes, those without a zone last. A fraction of a
// second may follow the seconds of each.
var ISOLayouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05",
}

// ParseJSONTime reads a JSON number as a time since the epoch. The unit is told
// by the size: below 1e11 seconds (to the year 5138), below 1e14 milliseconds,
// below 1e17 microseconds, else nanoseconds. Digits after the point count, to
// the nanosecond. 0 is the epoch, which validation refuses as an unset clock.
func ParseJSONTime(number string) (time.Time, error) {
	whole, frac, _ := strings.Cut(number, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.ContainsAny(frac, "eE") {
		f, err := strconv.ParseFloat(number, 64)
		if err != nil || !(f > -1<<63 && f < 1<<63) {
			return time.Time{}, fmt.Errorf("%q is not a time", number)
		}
		n, frac = int64(f), ""
		if f < 1e11 && f > -1e11 { // seconds with an exponent may have a part
			frac = strconv.FormatFloat(f, 'f', 9, 64)
			frac = frac[strings.IndexByte(frac, '.')+1:]
		}
	}
	unit, digits := int64(time.Second), 9
	switch size := max(n, -n); {
	case size >= 1e17 || size < 0:
		unit, digits = 1, 0
	case size >= 1e14:
		unit, digits = int64(time.Microsecond), 3
	case size >= 1e11:
		unit, digits = int64(time.Millisecond), 6
	}
	part, err := strconv.ParseUint("0"+(frac + "000000000")[:digits], 10, 63)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a time", number)
	}
	ns := int64(part)
	if strings.HasPrefix(number, "-") {
		ns = -ns
	}
	per := int64(time.Second) / unit
	return time.Unix(n/per, n%per*unit+ns).UTC(), nil
}
