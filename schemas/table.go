package schemas

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed sql/log.sql
var logSQL string

var logTable = template.Must(template.New("log").Parse(logSQL))

// Column types and codecs of promoted fields in the table.
var fieldColumns = map[FieldType]string{
	TypeString:         "String CODEC(ZSTD(1))",
	TypeLowCardinality: "LowCardinality(String) CODEC(ZSTD(1))",
	TypeInt64:          "Int64 CODEC(T64, ZSTD(1))",
	TypeFloat64:        "Float64 CODEC(ZSTD(1))",
	TypeBool:           "Bool CODEC(ZSTD(1))",
	TypeTimestamp:      "DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1))",
}

// QuotedTable is database and table, quoted. The topic's name was validated.
func QuotedTable(database, topic string) string {
	return QuoteName(database) + "." + QuoteName(topic)
}

// QuoteName quotes an identifier for ClickHouse.
func QuoteName(s string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(s) + "`"
}

// CreateTable is the DDL of the topic's table, for its newest schema version.
func (t *Topic) CreateTable(database string) string {
	type field struct{ Name, Column string }
	fields := make([]field, len(t.Fields))
	for i, f := range t.Fields {
		fields[i] = field{f.Name, fieldColumns[f.Type]}
	}
	var b strings.Builder
	err := logTable.Execute(&b, map[string]any{"Table": QuotedTable(database, t.Name), "Fields": fields})
	if err != nil {
		panic(err) // the template is a constant: a test runs it
	}
	return b.String()
}

// AddColumns is the DDL that gives an existing table the columns of t it lacks.
// Adding a column is metadata only: old rows read as its default.
func (t *Topic) AddColumns(database string) string {
	if len(t.Fields) == 0 {
		return ""
	}
	adds := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		after := ColAttributes
		if i > 0 {
			after = t.Fields[i-1].Name
		}
		adds[i] = fmt.Sprintf("ADD COLUMN IF NOT EXISTS %s %s AFTER %s", QuoteName(f.Name), fieldColumns[f.Type], QuoteName(after))
	}
	return "ALTER TABLE " + QuotedTable(database, t.Name) + " " + strings.Join(adds, ", ")
}

// DefaultSQL is the value a row has whose frame did not know the field yet.
func (f Field) DefaultSQL() string {
	return "defaultValueOfTypeName('" + strings.ReplaceAll(string(fieldColTypes[f.Type]), "'", "\\'") + "')"
}
