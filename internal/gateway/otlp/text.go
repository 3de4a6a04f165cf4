package otlp

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/almanac-events/almanac/schemas/rawjson"
)

// textOf is a value as text: bytes as base64, lists and maps as JSON.
func textOf(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeBytes:
		return base64.StdEncoding.EncodeToString(v.Bytes().AsRaw())
	case pcommon.ValueTypeMap, pcommon.ValueTypeSlice:
		return string(appendJSON(nil, v))
	}
	return v.AsString()
}

// appendJSON appends a value as JSON, the members of a map by name, so that equal
// maps are equal texts. Texts keep bytes that are not UTF-8, so that the event is marked, which
// encoding/json would replace. Numbers that JSON does not have are texts.
func appendJSON(dst []byte, v pcommon.Value) []byte {
	switch v.Type() {
	case pcommon.ValueTypeMap:
		dst = append(dst, '{')
		for _, m := range members(v.Map()) {
			dst = append(append(comma(dst, '{'), rawjson.Quote(m.name)...), ':')
			dst = appendJSON(dst, m.value)
		}
		return append(dst, '}')
	case pcommon.ValueTypeSlice:
		dst = append(dst, '[')
		for _, v := range v.Slice().All() {
			dst = appendJSON(comma(dst, '['), v)
		}
		return append(dst, ']')
	case pcommon.ValueTypeInt:
		return strconv.AppendInt(dst, v.Int(), 10)
	case pcommon.ValueTypeBool:
		return strconv.AppendBool(dst, v.Bool())
	case pcommon.ValueTypeEmpty:
		return append(dst, "null"...)
	case pcommon.ValueTypeDouble:
		if f := v.Double(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			text, _ := json.Marshal(f) // finite, so it has one
			return append(dst, text...)
		}
	}
	return append(dst, rawjson.Quote(textOf(v))...)
}

type member struct {
	name  string
	value pcommon.Value
}

// members returns those of a map by name; those of one name all, as they came.
func members(m pcommon.Map) []member {
	out := make([]member, 0, m.Len())
	for name, v := range m.All() {
		out = append(out, member{name, v})
	}
	slices.SortStableFunc(out, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return out
}

// comma separates a member from the one before it.
func comma(dst []byte, opening byte) []byte {
	if dst[len(dst)-1] == opening {
		return dst
	}
	return append(dst, ',')
}
