package sql

import (
	"github.com/almanac-events/almanac/schemas"
	"strings"
)

// CreateLedger is the DDL of the table of such copies.
func CreateLedger(database string) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, "ledger.sql", map[string]any{"Table": QuotedTable(database, schemas.TableLedger)}); err != nil {
		panic(err) // the template is a constant, and a test runs it
	}
	return b.String()
}
