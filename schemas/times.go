package schemas

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseTime reads a time as RFC 3339 has it, or as programs write it in its place: with a
// small t or z, a space in place of the T, without seconds, with the second 60, with a comma before
// the fraction, with a zone of +01 or +0100, after a space, or as UTC, and without a zone (then UTC). A
// text of nine digits or more is a number, as ParseJSONTime reads it.
func ParseTime(text string) (time.Time, error) {
	if n := len(text); n > leastEpoch && n <= mostEpoch && strings.Trim(text, "0123456789.") == "" {
		if t, err := ParseJSONTime(text); err == nil {
			return t, nil
		}
	}
	if t, n, ok := ISOPrefix(text, time.UTC); ok && n == len(text) {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%.80q is not a time; write it as 2026-11-23T10:00:00Z", text)
}

// leastEpoch is the length of texts that are dates without signs between, such as 20261123, and no time since the epoch.
const leastEpoch, mostEpoch = 8, 40

// ISOPrefix reads the time that a text begins with, and returns how many bytes it has. One
// without a zone is of loc.
func ISOPrefix(text string, loc *time.Location) (t time.Time, n int, ok bool) {
	var f [6]int // year to second
	widths, signs := [6]int{4, 2, 2, 2, 2, 2}, [6]string{"", "-", "-", "Tt ", ":", ":"}
	for i := range f {
		at := n
		if i > 0 {
			if at == len(text) || strings.IndexByte(signs[i], text[at]) < 0 {
				if i == 5 {
					break // without seconds
				}
				return t, 0, false
			}
			at++
		}
		if f[i], ok = digits(text, at, widths[i]); !ok {
			if i == 5 {
				break
			}
			return t, 0, false
		}
		n = at + widths[i]
	}
	year, month, day, hour, minute, second := f[0], time.Month(f[1]), f[2], f[3], f[4], f[5]
	if d := time.Date(year, month, day, 0, 0, 0, 0, time.UTC); d.Month() != month || d.Day() != day || hour > 23 || minute > 59 || second > 60 {
		return t, 0, false
	}
	ns := 0
	if n < len(text) && (text[n] == '.' || text[n] == ',') && n+1 < len(text) && isDigit(text[n+1]) {
		n++
		for unit := int(time.Second) / 10; n < len(text) && isDigit(text[n]); n, unit = n+1, unit/10 {
			ns += int(text[n]-'0') * unit
		}
	}
	zone, more := zonePrefix(text[n:])
	if zone == nil {
		zone = loc
	}
	return time.Date(year, month, day, hour, minute, second, ns, zone), n + more, true
}

// zonePrefix reads the zone that a text begins with, nil where it begins with none.
func zonePrefix(text string) (zone *time.Location, n int) {
	word := strings.TrimPrefix(text, " ")
	n = len(text) - len(word)
	switch {
	case n == 0 && word != "" && (word[0] == 'Z' || word[0] == 'z'):
		return time.UTC, 1
	case len(word) >= 3 && (word[:3] == "UTC" || word[:3] == "GMT") && (len(word) == 3 || !isWordByte(word[3])):
		return time.UTC, n + 3
	case word == "" || word[0] != '+' && word[0] != '-':
		return nil, 0
	}
	hours, ok := digits(word, 1, 2)
	at := 3
	if at < len(word) && word[at] == ':' {
		at++
	}
	minutes, long := digits(word, at, 2)
	if at += 2; !long {
		at = 3
	}
	// A sign and two digits after a space are something else.
	if !ok || !long && n > 0 || hours > 23 || minutes > 59 || at < len(word) && isDigit(word[at]) {
		return nil, 0
	}
	offset := hours*3600 + minutes*60
	if word[0] == '-' {
		offset = -offset
	}
	return time.FixedZone("", offset), n + at
}

// digits reads a number of so many digits.
func digits(text string, at, width int) (n int, ok bool) {
	if len(text) < at+width {
		return 0, false
	}
	for _, c := range []byte(text[at : at+width]) {
		if !isDigit(c) {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordByte(c byte) bool {
	return isDigit(c) || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// wrongClock is how far ahead of the clock a time without a year may be, and is still of the year that
// makes it so: a clock that is wrong by a zone or a day is common, a record of nearly a year ago is not.
const wrongClock = 7 * 24 * time.Hour

// WithYear gives a time without a year the latest one that puts it not more than a week after now. So one of a
// clock that goes ahead is refused as such, and is not of the year before. Nine years back
// there was a 29 February, even around 1900 and 2100.
func WithYear(t, now time.Time) (time.Time, bool) {
	limit := now.Add(wrongClock)
	for year := limit.In(t.Location()).Year(); year > limit.Year()-9; year-- {
		at := time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
		if at.Day() == t.Day() && !at.After(limit) {
			return at, true
		}
	}
	return t, false
}

// ParseJSONTime reads a JSON number as a time since the epoch. The unit is told
// by the size: below 1e11 seconds (to the year 5138), below 1e14 milliseconds,
// below 1e17 microseconds, else nanoseconds. Digits after the point count, to
// the nanosecond. 0 is the epoch, which validation refuses as an unset clock.
func ParseJSONTime(number string) (time.Time, error) {
	whole, frac, _ := strings.Cut(withoutExponent(number), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%.80q is not a time", number)
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

// withoutExponent writes a number such as 1.764064800123e9 with all its digits; one that is none, or too
// large for a time, stays as it is.
func withoutExponent(number string) string {
	mantissa, exponent, ok := strings.Cut(strings.ToLower(number), "e")
	if !ok {
		return number
	}
	by, err := strconv.Atoi(exponent)
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	if err != nil || by > mostEpoch || by < -mostEpoch || whole == "" || strings.Trim(whole+frac, "0123456789") != "" {
		return number
	}
	for ; by > 0; by-- {
		if frac == "" {
			frac = "0"
		}
		whole, frac = whole+frac[:1], frac[1:]
	}
	for ; by < 0; by++ {
		if whole == "" {
			whole = "0"
		}
		whole, frac = whole[:len(whole)-1], whole[len(whole)-1:]+frac
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	return sign + whole + "." + frac
}

// UnixNs is t in unix nanoseconds, or an error when DateTime64(9) cannot hold
// it (years 1970 to 2261 can).
func UnixNs(t time.Time) (int64, error) {
	if y := t.UTC().Year(); y > 2261 {
		return 0, fmt.Errorf("%w: year %d, the last one a nanosecond time can hold is 2261", ErrTimeTooFarAhead, y)
	} else if y < 1900 {
		return 0, fmt.Errorf("%w: year %d", ErrTimeTooOld, y)
	}
	return t.UnixNano(), nil
}
