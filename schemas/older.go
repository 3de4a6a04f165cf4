package schemas

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// An event that is older than a promoted field has the value among its attributes, as text; a
// document has it in its body. OlderSQL and OlderValue read it there. They agree on every text:
// one is ClickHouse's, the other is for frames that are read without it.

// The texts that are numbers and times.
const (
	WholeText   = `^[+-]?[0-9]{1,19}$`
	RoundText   = `^-?(0|[1-9][0-9]*)[.]0+$|^-?[0-9]([.][0-9]{1,17})?[eE][+]?[0-9]{1,2}$` // may be whole
	NumberText  = `^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]{1,4})?$`
	DecimalText = `^[+-]?[0-9]{1,20}([.][0-9]{1,18})?([eE][+]?[0-9]{1,2})?$`
	IsoText     = `^(19|20|21)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])?$`
	EpochText   = `^-?[0-9]{1,19}([.][0-9]+)?$`
)

var (
	isWhole   = regexp.MustCompile(WholeText)
	isRound   = regexp.MustCompile(RoundText)
	isNumber  = regexp.MustCompile(NumberText)
	isDecimal = regexp.MustCompile(DecimalText)
	isISO     = regexp.MustCompile(IsoText)
	isEpoch   = regexp.MustCompile(EpochText)
)

// The times that UnixNs takes: from 1900 on, below 2262.
const (
	FirstNs = -2_208_988_800 * 1e9
	PastNs  = 9_214_646_400 * 1e9
)

// OlderValue returns the value of a field of a type that the text of an attribute has, in an
// event that is older than the field; false where the text is not of the type.
func OlderValue(of FieldType, text string) (Attr, bool) {
	a := String("", text)
	switch of {
	case TypeInt64:
		if isWhole.MatchString(text) {
			n, err := strconv.ParseInt(text, 10, 64)
			return Int64("", n), err == nil
		}
		v, err := strconv.ParseFloat(text, 64)
		return Int64("", int64(v)), err == nil && isRound.MatchString(text) && v == math.Trunc(v) && math.Abs(v) <= kinds.MaxExact
	case TypeFloat64:
		v, err := strconv.ParseFloat(text, 64)
		if v == 0 {
			v = 0 // and not -0
		}
		return Float64("", v), err == nil && isNumber.MatchString(text)
	case TypeBool:
		v, ok := a.AsBool()
		return Bool("", v), ok
	case TypeDecimal:
		_, ok := a.AsDecimal()
		return a, ok && isDecimal.MatchString(text)
	case TypeTimestamp:
		return olderTime(text)
	case TypeJSON:
		_, err := strconv.ParseFloat(text, 64)
		return a, text != "" && a.Fits(TypeJSON) && (err == nil || !isNumber.MatchString(text)) // ClickHouse takes no number beyond a float64

	}
	return a, text != ""
}

func olderTime(text string) (Attr, bool) {
	a := String("", text)
	ns, ok := a.AsTime()
	return Attr{kind: KindTime, num: uint64(ns)}, ok && (isEpoch.MatchString(text) || isISO.MatchString(text))
}

// BodyText returns the text of a scalar under a key of a document's body, nil where it does not have one.
func BodyText(body []byte, key string) []byte {
	var top map[string]json.RawMessage
	if json.Unmarshal(body, &top) != nil {
		return nil
	}
	raw := top[key]
	switch {
	case len(raw) == 0, raw[0] == '{', raw[0] == '[', raw[0] == 'n':
		return nil
	case raw[0] == '"':
		var text string
		_ = json.Unmarshal(raw, &text)
		return []byte(text)
	}
	return raw
}

// Older returns the value that an event has of a field which is newer than its frame. attribute
// returns the text of the event's first attribute of a name, nil where it lacks one.
func Older(f *Field, attribute func(name string) []byte) (Attr, bool) {
	for _, name := range []string{f.Name, f.From} {
		if text := attribute(name); name != "" && len(text) > 0 {
			if a, ok := OlderValue(f.Type, string(text)); ok {
				return a, true
			}
		}
	}
	return Attr{}, false
}
