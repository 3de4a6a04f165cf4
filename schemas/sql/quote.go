package sql

import "strings"

// QuotedTable is database and table, quoted. The topic's name was validated.
func QuotedTable(database, topic string) string {
	return QuoteName(database) + "." + QuoteName(topic)
}

// QuoteName quotes an identifier for ClickHouse.
func QuoteName(s string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(s) + "`"
}

// QuoteText quotes a string for ClickHouse.
func QuoteText(s string) string {
	return "'" + strings.NewReplacer("\\", "\\\\", "'", "\\'", "\x00", `\0`).Replace(s) + "'"
}
