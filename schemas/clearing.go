package schemas

import (
	"slices"
	"strings"
)

// Clearing is what clearing fields empties of a topic's events.
type Clearing struct {
	// Attributes says that all of them go.
	Attributes bool
	// Names are plain names of attributes that go, with every name derived from one.
	Names   []string
	Columns []ClearedColumn
}

// ClearedColumn is a column that is emptied.
type ClearedColumn struct {
	Name string
	// Texts: only where it holds a JSON text. A field that lies inside one cannot be taken out of
	// it in ClickHouse, so the whole text goes.
	Texts bool
}

// Clearing tells what clearing the fields empties.
func (t *Topic) Clearing(fields []string) (c Clearing) {
	for _, f := range t.clearedNames(fields) {
		if f == ColAttributes {
			c.Attributes = true
			continue
		}
		name, attribute := RuleName(f)
		c.Names = append(c.Names, aliases(name)...)
		if attribute {
			continue
		}
		for _, column := range t.textColumns() {
			if strings.HasPrefix(name, column) && len(name) > len(column) && isNameEnd(name[len(column)]) {
				c.empty(ClearedColumn{Name: column, Texts: true})
			}
		}
		promoted := slices.ContainsFunc(t.Fields, func(p Field) bool { return p.Name == name })
		if promoted || slices.Contains(reservedColumns, name) {
			c.empty(ClearedColumn{Name: name})
		}
	}
	return c
}

// empty adds a column. One that goes whole does, whatever lies inside it.
func (c *Clearing) empty(column ClearedColumn) {
	i := slices.IndexFunc(c.Columns, func(have ClearedColumn) bool { return have.Name == column.Name })
	if i < 0 {
		c.Columns = append(c.Columns, column)
		return
	}
	c.Columns[i].Texts = c.Columns[i].Texts && column.Texts
}

// empties reports whether a column may change.
func (c *Clearing) empties(column string) bool {
	if column == ColAttributes {
		return c.Attributes || len(c.Names) > 0
	}
	return slices.ContainsFunc(c.Columns, func(have ClearedColumn) bool { return have.Name == column })
}

// Around are the names inside whose JSON text one of plain names lies.
func Around(names []string) (outer []string) {
	for _, n := range names {
		for i := range n {
			if i > 0 && isNameEnd(n[i]) {
				outer = append(outer, n[:i])
			}
		}
	}
	return outer
}

// clearedNames are the names, and the other ones of fields that have two and are
// covered by one of them.
func (t *Topic) clearedNames(fields []string) []string {
	var rules []Private
	for _, f := range fields {
		rules = append(rules, Private{Field: f})
	}
	fields = slices.Clone(fields)
	for _, p := range t.underBothNames(rules)[len(rules):] {
		fields = append(fields, p.Field)
	}
	return fields
}

// textColumns are the columns that may hold a JSON text.
func (t *Topic) textColumns() []string {
	columns := []string{ColLevel, ColService, ColType, ColUserID, ColTraceID, ColSpanID, ColMessage}
	for _, f := range t.Fields {
		if f.Type.IsText() {
			columns = append(columns, f.Name)
		}
	}
	return columns
}
