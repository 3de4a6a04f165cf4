package schemas

import "strings"

// LedgerCopy is an entry of the ledger as a copy outside NATS has it.
type LedgerCopy struct {
	Key string
	// Count is how often the entry was written; see HeaderCount.
	Count uint64
	// Value is empty where the entry was forgotten.
	Value []byte
	// Applied says of an erasure that the rows of this copy's ClickHouse are without it.
	Applied bool
}

// CreateLedger is the DDL of the table of such copies.
func CreateLedger(database string) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, "ledger.sql", map[string]any{"Table": QuotedTable(database, TableLedger)}); err != nil {
		panic(err) // the template is a constant, and a test runs it
	}
	return b.String()
}
