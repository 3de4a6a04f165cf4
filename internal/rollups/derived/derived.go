package derived

import "github.com/almanac-events/almanac/internal/tables"

// Tables are those of a database that are filled from topics' rows.
type Tables struct{ *tables.DB }

// Of returns the tables of a database.
func Of(db *tables.DB) Tables { return Tables{db} }
