package filter

import (
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// MaxFields bounds a field mask.
const MaxFields = 256

// Fields is a field mask: the columns and attributes an answer has. The nil
// *Fields has all of them. It does not change and may be shared.
type Fields struct {
	columns []string // in the order asked for, each once
	keys    []string // of the attributes asked for one by one
	names   []string // as a table's heading has them
}

// ParseFields reads a field mask: names as a filter writes them, such as ts,
// level, attributes.actor.login or attributes['any name']; attributes alone is
// all of them. No names at all is the nil mask.
func ParseFields(names []string, t *schemas.Topic) (*Fields, error) {
	if len(names) == 0 {
		return nil, nil
	}
	src := strings.Join(names, ",")
	if len(names) > MaxFields {
		return nil, &Error{Src: src, Column: 1, Kind: ErrTooLarge, Msg: "it names " + strconv.Itoa(len(names)) + " fields, the limit is " + strconv.Itoa(MaxFields)}
	}
	c := &compiler{src: src, fields: fieldsOf(t)}
	m := &Fields{}
	whole, offset := false, 0
	for _, name := range names {
		at := offset
		offset += len(name) + 1
		f := field{name: schemas.ColAttributes}
		if strings.TrimSpace(name) != schemas.ColAttributes {
			var err error
			if f, err = c.named(name, at); err != nil {
				return nil, err
			}
		}
		name = strings.TrimSpace(name)
		switch {
		case f.typ == typeAttr && !slices.Contains(m.keys, f.key):
			m.keys = append(m.keys, f.key)
		case name == schemas.ColAttributes:
			whole = true
		}
		if !slices.Contains(m.columns, f.name) {
			m.columns = append(m.columns, f.name)
		}
		shown := name
		if f.typ == typeAttr {
			shown = f.String()
		}
		if !slices.Contains(m.names, shown) {
			m.names = append(m.names, shown)
		}
	}
	if whole {
		m.keys = nil
	}
	return m, nil
}

// named finds the field that a name means, which stands at an offset of the source.
func (c *compiler) named(name string, offset int) (field, error) {
	term := &fieldTerm{}
	term.Pos.Offset = offset + len(name) - len(strings.TrimLeft(name, " "))
	var err error
	if term.Name, term.Key, err = splitField(c.src, term, strings.TrimSpace(name)); err != nil {
		return field{}, err
	}
	return c.resolve(term)
}

// splitField takes attributes['any name'] apart; any other name is itself.
func splitField(src string, at *fieldTerm, name string) (string, *string, error) {
	base, rest, bracket := strings.Cut(name, "[")
	if !bracket {
		return name, nil, nil
	}
	key, closed := strings.CutSuffix(rest, "]")
	if closed && len(key) >= 2 && (key[0] == '\'' || key[0] == '"') && key[len(key)-1] == key[0] {
		return base, &key, nil
	}
	return "", nil, &Error{Src: src, Column: columnAt(src, at.Pos.Offset), Kind: ErrSyntax, Msg: "an attribute in brackets is written attributes['any name']"}
}

// Names are what was asked for, in that order, each once.
func (m *Fields) Names() []string {
	if m == nil {
		return nil
	}
	return slices.Clone(m.names)
}

// keysParam is the parameter that holds the mask's attributes. The parameters of
// a filter are p1, p2, ….
const keysParam = "mask"

// SQL is the mask as expressions to select, one for each column, written by
// column but for the attributes, which keep only those asked for; params are the
// parameters it needs, as those of Expr.SQL.
func (m *Fields) SQL(column func(name string) string) (exprs []string, params map[string]string) {
	params = map[string]string{}
	for _, name := range m.columns {
		if name != schemas.ColAttributes || len(m.keys) == 0 {
			exprs = append(exprs, column(name))
			continue
		}
		params[keysParam] = ParamArray(m.keys, true)
		attrs := "`" + schemas.ColAttributes + "`"
		exprs = append(exprs, "mapFilter((k, v) -> has({"+keysParam+":Array(String)}, k), "+attrs+") AS "+attrs)
	}
	return exprs, params
}
