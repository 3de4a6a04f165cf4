package schemas

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// AttrKind is the type of an attribute's value, as the caller gave it.
type AttrKind uint8

// The kinds of attribute values.
const (
	KindString AttrKind = iota
	KindInt64
	KindFloat64
	KindBool
	KindTime
)

// Attr is one named value of an event. It is a plain value: making one and
// passing it to a producer allocates nothing.
type Attr struct {
	Key  string
	kind AttrKind
	num  uint64
	str  string
}

// String is an attribute with a text value.
func String(key, v string) Attr { return Attr{Key: key, str: v} }

// Int64 is an attribute with an integer value.
func Int64(key string, v int64) Attr { return Attr{Key: key, kind: KindInt64, num: uint64(v)} }

// Float64 is an attribute with a floating-point value.
func Float64(key string, v float64) Attr {
	return Attr{Key: key, kind: KindFloat64, num: math.Float64bits(v)}
}

// Bool is an attribute with a truth value.
func Bool(key string, v bool) Attr {
	a := Attr{Key: key, kind: KindBool}
	if v {
		a.num = 1
	}
	return a
}

// Time is an attribute with a point in time, kept in nanoseconds.
func Time(key string, v time.Time) Attr {
	return Attr{Key: key, kind: KindTime, num: uint64(v.UnixNano())}
}

// Kind is the type of the attribute's value.
func (a *Attr) Kind() AttrKind { return a.kind }

// Clone is the attribute with texts of its own.
func (a *Attr) Clone() Attr {
	return Attr{Key: strings.Clone(a.Key), kind: a.kind, num: a.num, str: strings.Clone(a.str)}
}

// AppendText appends the value as text: numbers in decimal, times in RFC 3339
// with nanoseconds in UTC, booleans as true or false.
func (a *Attr) AppendText(dst []byte) []byte {
	switch a.kind {
	case KindInt64:
		return strconv.AppendInt(dst, int64(a.num), 10)
	case KindFloat64:
		return strconv.AppendFloat(dst, math.Float64frombits(a.num), 'g', -1, 64)
	case KindBool:
		return strconv.AppendBool(dst, a.num != 0)
	case KindTime:
		return time.Unix(0, int64(a.num)).UTC().AppendFormat(dst, time.RFC3339Nano)
	default:
		return append(dst, a.str...)
	}
}

// Text is AppendText as a string.
func (a *Attr) Text() string {
	if a.kind == KindString {
		return a.str
	}
	return string(a.AppendText(nil))
}

// bytes bounds the attribute's share of the event: its name and its text.
func (a *Attr) bytes() int {
	if a.kind == KindString {
		return len(a.Key) + len(a.str)
	}
	return len(a.Key) + 8
}

// AsInt64 is the value as an integer, when it is one exactly.
func (a *Attr) AsInt64() (int64, bool) {
	switch a.kind {
	case KindInt64:
		return int64(a.num), true
	case KindFloat64:
		f := math.Float64frombits(a.num)
		// 1<<53 is the last float64 below which every integer is exact.
		if f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
			return int64(f), true
		}
	case KindString:
		v, err := strconv.ParseInt(a.str, 10, 64)
		return v, err == nil
	}
	return 0, false
}

// AsFloat64 is the value as a number; a text only when it is decimal and finite.
func (a *Attr) AsFloat64() (float64, bool) {
	switch a.kind {
	case KindInt64:
		return float64(int64(a.num)), true
	case KindFloat64:
		return math.Float64frombits(a.num), true
	case KindString:
		if strings.Trim(a.str, "0123456789+-.eE") != "" { // NaN, Inf, hexadecimal
			return 0, false
		}
		v, err := strconv.ParseFloat(a.str, 64)
		return v, err == nil
	}
	return 0, false
}

// AsBool is the value as a truth value.
func (a *Attr) AsBool() (v, ok bool) {
	switch a.kind {
	case KindBool:
		return a.num != 0, true
	case KindString:
		b, err := strconv.ParseBool(a.str)
		return b, err == nil
	}
	return false, false
}

// AsTime is the value as unix nanoseconds: RFC 3339, or a number as ParseJSONTime
// takes it for the event's own time.
func (a *Attr) AsTime() (int64, bool) {
	switch a.kind {
	case KindTime:
		return int64(a.num), true
	case KindInt64, KindFloat64, KindString:
		text := strings.Clone(a.Text()) // what time.Parse keeps for its error
		t, err := ParseTime(text)
		if err != nil {
			t, err = ParseJSONTime(text)
		}
		if err != nil {
			return 0, false
		}
		ns, err := UnixNs(t)
		return ns, err == nil
	}
	return 0, false
}

// AttrInvalidUTF8 marks an event one of whose strings is not valid UTF-8; its
// value names the column.
const AttrInvalidUTF8 = "almanac_invalid_utf8"

// What `send --cut` and `--split` note of a record whose event would have more than MaxEventBytes: how many bytes
// it had, their SHA-256 in hex, and which part of how many the event has.
const (
	AttrLongBytes  = "almanac_long_bytes"
	AttrLongSHA256 = "almanac_long_sha256"
	AttrPart       = "almanac_part"
	AttrParts      = "almanac_parts"
)

// AttrLevelText keeps the level as it was sent where the stored word differs.
const AttrLevelText = "level_text"
