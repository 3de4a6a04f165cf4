package filter

import (
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// value is a literal fitted to its field.
type value struct {
	src    string // as String prints it
	param  string // ClickHouse's text of it
	number bool   // written as a number
}

// clickhouseTime is how a DateTime64(9) parameter is written, in UTC.
const clickhouseTime = "2006-01-02 15:04:05.000000000"

// fit turns a literal into a value of the field's type.
func (c *compiler) fit(f field, l *literal) (value, error) {
	v := literalValue(l)
	var ok bool
	switch f.typ {
	case typeText, typeAttr:
		ok = l.Relative == nil
	case typeUUID:
		var id schemas.ID
		id, err := schemas.ParseID(v.param)
		v.param, ok = id.String(), err == nil && l.Text != nil
	case typeTime:
		var at time.Time
		if at, ok = c.time(l, v.param); ok {
			v.param = at.UTC().Format(clickhouseTime)
			v.src = Quote(at.UTC().Format(time.RFC3339Nano))
		}
	case typeFloat:
		if ok = v.toFloat() && l.Number != nil; ok && !v.exact() {
			return value{}, c.fail(l.Pos, ErrType, "%s is a float64, which does not have the whole number %s; the nearest that it has is %s", f, clip(v.src), v.param)
		}
	case typeInt:
		n, err := strconv.ParseInt(v.param, 10, 64)
		v.param, ok = strconv.FormatInt(n, 10), l.Number != nil && err == nil
	case typePos:
		n, err := strconv.ParseUint(strings.TrimPrefix(v.param, "+"), 10, 64)
		v.param, ok = strconv.FormatUint(n, 10), l.Number != nil && err == nil
	case typeBool:
		ok = l.Bool != nil
	case typeMonth:
		m, err := schemas.ParseMonth(v.param)
		v.param, ok = strconv.FormatUint(uint64(m), 10), l.Text != nil && err == nil
	case typeShard:
		s, err := schemas.ParseShard(v.param)
		v.param, ok = strconv.FormatUint(uint64(s), 10), l.Text != nil && err == nil
	}
	if !ok {
		if l.Relative != nil && f.typ == typeTime {
			return value{}, c.fail(l.Pos, ErrType, "a relative time cannot be used here; write an RFC 3339 time")
		}
		return value{}, c.fail(l.Pos, ErrType, "%s is %s, %s is not", f, typeFacts[f.typ].want, clip(v.src))
	}
	return v, nil
}

// toFloat spells a number as ClickHouse reads it everywhere (it refuses +7).
func (v *value) toFloat() bool {
	n, err := strconv.ParseFloat(v.param, 64) // an error beyond float64's range
	v.param = strconv.FormatFloat(n, 'g', -1, 64)
	return err == nil
}

// exact reports whether a number that toFloat took is not a whole one that a float64 lacks.
// Digits after a point are those of the nearest float64, as they are where events have them.
func (v *value) exact() bool {
	if strings.ContainsAny(v.src, ".eE") {
		return true
	}
	n, err := strconv.ParseFloat(v.src, 64)
	whole, ok := new(big.Int).SetString(v.src, 10)
	return err != nil || !ok || new(big.Float).SetInt(whole).Cmp(big.NewFloat(n)) == 0
}

// literalValue is a literal before it is fitted: its text without quotes.
func literalValue(l *literal) value {
	switch {
	case l.Text != nil:
		s := unquote(*l.Text)
		return value{src: Quote(s), param: s}
	case l.Number != nil:
		return value{src: *l.Number, param: *l.Number, number: true}
	case l.Bool != nil:
		b := strings.ToLower(*l.Bool)
		return value{src: b, param: b}
	}
	return value{src: *l.Relative, param: *l.Relative}
}

// time reads an RFC 3339 time, a date (midnight UTC) or a relative time.
func (c *compiler) time(l *literal, text string) (at time.Time, ok bool) {
	switch {
	case l.Relative != nil:
		d, ok := relative(text[1:])
		return c.now.Add(-d), ok && !c.now.IsZero()
	case l.Text == nil:
		return at, false
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	if err == nil {
		_, err = schemas.UnixNs(at) // what DateTime64(9) can hold
	}
	return at, err == nil
}

// relative reads a duration such as 15m, 1h30m, 7d or 2w.
func relative(s string) (total time.Duration, ok bool) {
	for s != "" {
		i := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
		if i <= 0 {
			return 0, false
		}
		n, err := strconv.ParseInt(s[:i], 10, 32)
		if err != nil {
			return 0, false
		}
		j := i + strings.IndexFunc(s[i:]+"0", func(r rune) bool { return r >= '0' && r <= '9' })
		unit, known := units[s[i:j]]
		if d := time.Duration(n) * unit; known && d/unit == time.Duration(n) && total+d >= total {
			total, s = total+d, s[j:]
			continue
		}
		return 0, false
	}
	return total, true
}

var units = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second,
	"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
}

var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '0': 0, '\\': '\\', '\'': '\'', '"': '"'}

// unquote is the text of a quoted literal. A backslash before any other
// character stands for itself.
func unquote(s string) string {
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if c, ok := escapes[s[i+1]]; ok {
				b.WriteByte(c)
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

var quoter = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\t", `\t`, "\r", `\r`, "\x00", `\0`)

// Quote writes a text as a literal of the filter language.
func Quote(s string) string { return "'" + quoter.Replace(s) + "'" }
