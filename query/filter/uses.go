package filter

import (
	"slices"

	"github.com/almanac-events/almanac/schemas"
)

// Uses lists the columns that a filter compares, and the attributes, each once.
func (e *Expr) Uses() (columns, attributes []string) {
	if e.All() {
		return nil, nil
	}
	var walk func(node)
	walk = func(n node) {
		switch n := n.(type) {
		case logical:
			for _, k := range n.kids {
				walk(k)
			}
		case negation:
			walk(n.kid)
		case compare:
			if n.field.name == schemas.ColAttributes {
				attributes = append(attributes, n.field.key)
			} else {
				columns = append(columns, n.field.name)
			}
		}
	}
	walk(e.root)
	slices.Sort(columns)
	slices.Sort(attributes)
	return slices.Compact(columns), slices.Compact(attributes)
}
