package schemas

import "slices"

// Column is a column of a table, as ClickHouse names its type.
type Column struct{ Name, Type string }

// FieldsOf are the promoted fields of a table whose topic was lost, in order: its columns but
// those every table has. odd are columns that can be no field, by type or name; repair notes
// them and leaves them out.
func FieldsOf(columns []Column) (fields []Field, odd []string) {
	for _, c := range columns {
		if slices.Contains(reservedColumns, c.Name) {
			continue
		}
		i := slices.IndexFunc(FieldTypes, func(f FieldType) bool { return f.Wire() == c.Type })
		if i < 0 || !validName(c.Name) {
			odd = append(odd, c.Name)
			continue
		}
		fields = append(fields, Field{Name: c.Name, Type: FieldTypes[i], Since: 1})
	}
	return fields, odd
}
