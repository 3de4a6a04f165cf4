package filter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// fieldType is how a field compares.
type fieldType int

const (
	typeText fieldType = iota
	typeAttr
	typeUUID
	typeTime
	typeFloat
	typeDecimal // no filter takes it
	typeInt
	typeBool
	typeMonth
	typeShard
	typePos
)

// typeFacts are what each type takes: its ClickHouse type, the words for
// messages with an example of a value, whether it has an order, and whether its
// values are quoted inside an array.
var typeFacts = map[fieldType]struct {
	sql, want       string
	ordered, quoted bool
}{
	typeText:  {"String", "text, such as 'error'", true, true},
	typeAttr:  {"String", "a text or a number", true, true},
	typeUUID:  {"UUID", "a UUID, such as '0193a1b2-0000-7000-8000-000000000001'", false, true},
	typeTime:  {"DateTime64(9,'UTC')", "a time, such as '2026-11-05T10:00:00Z', '2026-11-05' or -15m", true, true},
	typeFloat: {"Float64", "a number, such as 1.5", true, false},
	typeInt:   {"Int64", "a whole number, such as 500", true, false},
	typeBool:  {"Bool", "true or false", false, false},
	typeMonth: {"UInt32", "a month, such as '2026-11'", true, false},
	typeShard: {"UInt64", "a shard's 16 hex digits, such as '00c0ffee00c0ffee'", false, false},
	typePos:   {"UInt64", "a whole number from 0 on, such as 17", true, false},
}

// baseFields are the columns every topic has.
var baseFields = []struct {
	name string
	typ  fieldType
}{
	{schemas.ColTs, typeTime}, {schemas.ColID, typeUUID}, {schemas.ColLevel, typeText},
	{schemas.ColService, typeText}, {schemas.ColType, typeText}, {schemas.ColUserID, typeText},
	{schemas.ColTraceID, typeText}, {schemas.ColSpanID, typeText}, {schemas.ColMessage, typeText},
	{schemas.ColMonth, typeMonth}, {schemas.ColShard, typeShard}, {schemas.ColPos, typePos},
}

var promotedTypes = map[schemas.FieldType]fieldType{
	schemas.TypeString:         typeText,
	schemas.TypeLowCardinality: typeText,
	schemas.TypeInt64:          typeInt,
	schemas.TypeFloat64:        typeFloat,
	schemas.TypeBool:           typeBool,
	schemas.TypeJSON:           typeText,
	schemas.TypeDecimal:        typeDecimal,
	schemas.TypeTimestamp:      typeTime,
}

// field is a column, or one attribute.
type field struct {
	name string // of the column; "attributes" for an attribute
	key  string // the attribute's name
	typ  fieldType
	base bool // every event has it
	// promoted is the field of the topic, nil for a base column.
	promoted *schemas.Field
}

// fieldsOf are the columns of t by name. A nil topic has the base columns only.
func fieldsOf(t *schemas.Topic) map[string]field {
	m := make(map[string]field, len(baseFields))
	for _, b := range baseFields {
		m[b.name] = field{name: b.name, typ: b.typ, base: true}
	}
	if t != nil {
		for i := range t.Fields {
			f := &t.Fields[i]
			m[f.Name] = field{name: f.Name, typ: promotedTypes[f.Type], promoted: f}
			if f.From != "" {
				m[f.From] = m[f.Name]
			}
		}
	}
	return m
}

const attrPrefix = schemas.ColAttributes + "."

// resolve finds what the name in the filter means.
func (c *compiler) resolve(t *fieldTerm) (field, error) {
	name := t.Name
	quoted := strings.HasPrefix(name, "`")
	name = strings.Trim(name, "`")
	attr := func(key string) (field, error) {
		if f, ok := c.promoted(key); ok {
			return f, nil
		}
		if key == "" || len(key) > schemas.MaxAttrKeyBytes {
			return field{}, c.fail(t.Pos, ErrUnknownField, "an attribute's name has 1 to %d bytes, this one has %d", schemas.MaxAttrKeyBytes, len(key))
		}
		return field{name: schemas.ColAttributes, key: key, typ: typeAttr}, nil
	}
	switch key, dotted := strings.CutPrefix(name, attrPrefix); {
	case t.Key != nil && name == schemas.ColAttributes:
		return attr(unquote(*t.Key))
	case t.Key != nil:
		return field{}, c.fail(t.Pos, ErrUnknownField, "only attributes takes a name in brackets: attributes[%s]", clip(*t.Key))
	case dotted && !quoted:
		return attr(key)
	case name == schemas.ColAttributes:
		return field{}, c.fail(t.Pos, ErrUnknownField, "say which attribute: attributes.name or attributes['any name']")
	}
	if f, ok := c.fields[name]; ok && f.typ == typeDecimal {
		return field{}, c.fail(t.Pos, ErrUnknownField, "%s is a decimal, by which --where cannot select; `almanac sql` can", clip(name))
	} else if ok {
		return f, nil
	}
	hint := ""
	if near := c.nearest(name); near != "" {
		hint = fmt.Sprintf("did you mean %s? ", near)
	}
	return field{}, c.fail(t.Pos, ErrUnknownField, "%s is neither a column nor a promoted field; %san attribute is written %s", clip(name), hint, asAttribute(name, quoted))
}

// promoted is the column that has an attribute in the events of a topic, for row limits: its older events are read so too.
func (c *compiler) promoted(key string) (field, bool) {
	if !c.limit {
		return field{}, false
	}
	for _, f := range c.fields {
		if f.promoted != nil && key == cmp.Or(f.promoted.From, f.promoted.Name) {
			return f, true
		}
	}
	return field{}, false
}

// asAttribute is how a filter names the attribute that an unknown name may mean. In quotes it
// may have any bytes, which stand in brackets.
func asAttribute(name string, quoted bool) string {
	if !quoted {
		return attrPrefix + clip(name)
	}
	key := clip(strings.TrimPrefix(name, attrPrefix))
	return schemas.ColAttributes + "['" + strings.ReplaceAll(key, "'", "''") + "']"
}

// commonNames are what other systems call our columns.
var commonNames = map[string]string{
	"time": schemas.ColTs, "timestamp": schemas.ColTs, "@timestamp": schemas.ColTs, "date": schemas.ColTs,
	"msg": schemas.ColMessage, "body": schemas.ColMessage, "text": schemas.ColMessage,
	"severity": schemas.ColLevel, "user": schemas.ColUserID, "trace": schemas.ColTraceID, "span": schemas.ColSpanID,
}

// nearest is the known name that was meant by a wrong one, "" when none is near.
func (c *compiler) nearest(name string) string {
	name = strings.ToLower(name)
	if n, ok := commonNames[name]; ok {
		return n
	}
	return schemas.Nearest(name, slices.Collect(maps.Keys(c.fields)))
}
