package otlp

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// attributes gathers those of one event. A name that comes twice gets a number, as in
// events of JSON, so that nothing is lost.
type attributes struct {
	topic *schemas.Topic // nil: one without rules
	list  []schemas.Attr
	rest  map[string]string // whose names cannot be stored, and those beyond the limit
	// names, once they are many, counts how often each came.
	names map[string]int
}

// fewNames are so few that comparing each with each costs less than a map of them.
const fewNames = 64

func (a *attributes) clone() attributes {
	out := attributes{topic: a.topic, list: slices.Clone(a.list)}
	for name, v := range a.rest {
		out.keep(name, v)
	}
	return out
}

// add adds a value; a map's members one by one, with dots between the names.
func (a *attributes) add(name string, v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeMap:
		if v.Map().Len() == 0 {
			a.plain(schemas.String(name, "{}"))
		}
		for inner, v := range v.Map().All() {
			a.add(name+"."+inner, v)
		}
	case pcommon.ValueTypeInt:
		a.plain(schemas.Int64(name, v.Int()))
	case pcommon.ValueTypeDouble:
		a.plain(schemas.Float64(name, v.Double()))
	case pcommon.ValueTypeBool:
		a.plain(schemas.Bool(name, v.Bool()))
	default:
		a.plain(schemas.String(name, textOf(v)))
	}
}

// read adds a value of a record.
func (a *attributes) read(name string, v *anyValue) {
	switch v.kind {
	case pcommon.ValueTypeStr:
		a.plain(schemas.String(name, v.text))
	case pcommon.ValueTypeInt:
		a.plain(schemas.Int64(name, int64(v.num)))
	case pcommon.ValueTypeDouble:
		a.plain(schemas.Float64(name, math.Float64frombits(v.num)))
	default:
		a.add(name, v.toPdata())
	}
}

// text adds a text that is not empty.
func (a *attributes) text(name, v string) {
	if v != "" {
		a.plain(schemas.String(name, v))
	}
}

// count adds a number that is not 0.
func (a *attributes) count(name string, n uint32) {
	if n != 0 {
		a.plain(schemas.Int64(name, int64(n)))
	}
}

// plain adds one under its name. One that names a user is under the rule of user_id.
func (a *attributes) plain(v schemas.Attr) {
	if namesUser(v.Key) {
		v.Key = a.topic.OtherName(schemas.ColUserID, v.Key)
	}
	v.Key = a.free(v.Key)
	if v.Key == "" || len(v.Key) > schemas.MaxAttrKeyBytes {
		a.keep(v.Key, v.Text())
		return
	}
	a.list = append(a.list, v)
}

// free is the name, or the name with the first number from 2 on that no other has.
func (a *attributes) free(name string) string {
	free := name
	if len(a.list)+len(a.rest) <= fewNames {
		for n := 2; a.has(free); n++ {
			free = name + "#" + strconv.Itoa(n)
		}
		return free
	}
	if a.names == nil {
		a.names = make(map[string]int, 2*fewNames)
		for i := range a.list {
			a.names[a.list[i].Key] = 1
		}
		for taken := range a.rest {
			a.names[taken] = 1
		}
	}
	for a.names[free] > 0 {
		a.names[name]++
		free = name + "#" + strconv.Itoa(a.names[name])
	}
	a.names[free] = 1
	return free
}

func (a *attributes) has(name string) bool {
	for i := range a.list {
		if a.list[i].Key == name {
			return true
		}
	}
	_, there := a.rest[name]
	return there
}

func (a *attributes) keep(name, v string) {
	if a.rest == nil {
		a.rest = map[string]string{}
	}
	a.rest[name] = v
}

// join adds those of the resource and scope.
func (a *attributes) join(shared *attributes) {
	for _, v := range shared.list {
		a.plain(v)
	}
	for name, v := range shared.rest {
		a.keep(a.free(name), v)
	}
}

// done returns the attributes, with those beyond the limits as one JSON text. Those that
// the topic takes first are not beyond the limit on their number.
func (a *attributes) done(first func(name string) bool) []schemas.Attr {
	if len(a.list) > schemas.MaxAttrs || len(a.list) == schemas.MaxAttrs && a.rest != nil {
		own, others := make([]schemas.Attr, 0, len(a.list)), []schemas.Attr(nil)
		for _, v := range a.list {
			if first(v.Key) {
				own = append(own, v)
			} else {
				others = append(others, v)
			}
		}
		a.list = append(own, others...)
		for _, v := range a.list[schemas.MaxAttrs-1:] {
			a.keep(v.Key, v.Text())
		}
		a.list = a.list[:schemas.MaxAttrs-1]
	}
	if a.rest == nil {
		return a.list
	}
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(a.rest)) {
		text = append(append(text, "{,"[min(len(text), 1)]), rawjson.Quote(name)...)
		text = append(append(text, ':'), rawjson.Quote(a.rest[name])...)
	}
	return append(a.list, schemas.String(schemas.AttrRest, string(append(text, '}'))))
}
