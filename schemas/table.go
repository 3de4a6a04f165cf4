package schemas

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
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
	err := logTable.Execute(&b, map[string]any{"Table": QuotedTable(database, t.Name), "Fields": fields, "Mark": SettingsMark()})
	if err != nil {
		panic(err) // the template is a constant: a test runs it
	}
	return b.String()
}

// tableSettings are the settings of every table, as its definition has them.
var tableSettings = sync.OnceValue(func() string {
	_, text, _ := strings.Cut(logSQL, "\nSETTINGS\n")
	text, _, _ = strings.Cut(text, "\nCOMMENT ")
	return strings.Join(strings.Fields(sqlComment.ReplaceAllString(text, "")), " ")
})

var sqlComment = regexp.MustCompile(`--.*`)

// TableMark begins the comment of every table that Almanac made.
const TableMark = "made by almanac"

// SettingsMark is the comment of a table that has the settings of this version.
func SettingsMark() string {
	sum := sha256.Sum256([]byte(tableSettings()))
	return TableMark + ", settings " + hex.EncodeToString(sum[:8])
}

// ModifySettings is the DDL that gives a table of another version this one's settings.
func (t *Topic) ModifySettings(database string) string {
	return fmt.Sprintf("ALTER TABLE %s MODIFY COMMENT '%s', MODIFY SETTING %s", QuotedTable(database, t.Name), SettingsMark(), tableSettings())
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

// Index is a column by which ClickHouse can skip data.
type Index struct {
	Column string
	// Ordered says that it skips by <, <=, > and >= too, not only by = and IN.
	Ordered bool
}

// What the DDL says of indexes: the partition key, of whose columns each part
// keeps minimum and maximum; the first column of the order; skip indexes.
var (
	partitionClause = regexp.MustCompile(`(?m)^PARTITION BY \((.*)\)`)
	orderClause     = regexp.MustCompile("(?m)^ORDER BY \\(`?(\\w+)")
	indexClause     = regexp.MustCompile("(?m)^\\s*INDEX \\w+ `?(\\w+)`? TYPE (\\w+)")
	columnName      = regexp.MustCompile(`\w+`)
)

// Indexes are the columns the topic's table has an index on, as its DDL says.
func (t *Topic) Indexes() []Index {
	ddl := t.CreateTable("")
	var out []Index
	add := func(column string, ordered bool) {
		if column != "ignore" && !slices.ContainsFunc(out, func(i Index) bool { return i.Column == column }) {
			out = append(out, Index{column, ordered})
		}
	}
	if m := orderClause.FindStringSubmatch(ddl); m != nil {
		add(m[1], true)
	}
	for _, m := range indexClause.FindAllStringSubmatch(ddl, -1) {
		add(m[1], m[2] == "minmax")
	}
	if m := partitionClause.FindStringSubmatch(ddl); m != nil {
		for _, column := range columnName.FindAllString(m[1], -1) {
			add(column, true)
		}
	}
	return out
}
