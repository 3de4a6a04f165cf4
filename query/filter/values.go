package filter

import (
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// Values are fields whose values are counted as text. It does not change.
type Values struct {
	fields []field
	names  []string
}

// ParseValues reads names of fields as a filter writes them. Columns that tell every
// event apart, such as ts and id, are refused: their values have nothing to count.
func ParseValues(names []string, t *schemas.Topic) (*Values, error) {
	src := strings.Join(names, ",")
	c := &compiler{src: src, fields: fieldsOf(t)}
	v := &Values{}
	offset := 0
	for _, name := range names {
		f, err := c.named(name, offset)
		if err != nil {
			return nil, err
		}
		if f.base && f.typ != typeText {
			return nil, &Error{Src: src, Column: columnAt(src, offset), Kind: ErrType, Msg: f.String() + " is another one in every event; it takes a text, a promoted field or an attribute"}
		}
		offset += len(name) + 1
		v.fields, v.names = append(v.fields, f), append(v.names, strings.TrimSpace(name))
	}
	return v, nil
}

// Names are what was asked for, in that order.
func (v *Values) Names() []string { return v.names }

// SQL returns each field as an expression of type String, which is empty where an event
// lacks the field, and the parameters that the expressions need.
func (v *Values) SQL() (exprs []string, params map[string]string) {
	params = map[string]string{}
	for i, f := range v.fields {
		if f.typ == typeAttr {
			name := fmt.Sprintf("value%d", i)
			params[name] = ParamString(f.key)
			exprs = append(exprs, "`"+schemas.ColAttributes+"`[{"+name+":String}]")
			continue
		}
		exprs = append(exprs, "toString(`"+f.name+"`)")
	}
	return exprs, params
}

// Field is a name that a filter may use, and what it compares with.
type Field struct {
	Name string `json:"name"`
	// Want is the kind of value in words, with an example.
	Want string `json:"want"`
	// Text reports that the field is text, which an event may lack.
	Text bool `json:"-"`
	// Attribute is the name of an attribute as events have it; empty: it is a column.
	Attribute string `json:"-"`
}

// ColumnsOf returns the columns and promoted fields of a topic, in their order.
func ColumnsOf(t *schemas.Topic) (out []Field) {
	for _, b := range baseFields {
		out = append(out, Field{Name: b.name, Want: typeFacts[b.typ].want, Text: b.typ == typeText})
	}
	for _, f := range t.Fields {
		typ := promotedTypes[f.Type]
		out = append(out, Field{Name: f.Name, Want: typeFacts[typ].want, Text: typ == typeText})
	}
	return out
}

// AttributeName returns an attribute as a filter names it.
func AttributeName(key string) string {
	return field{name: schemas.ColAttributes, key: key, typ: typeAttr}.String()
}

// AttributeWant is the kind of value that an attribute compares with, in words.
func AttributeWant() string { return typeFacts[typeAttr].want }
