package sql

import (
	"embed"
	"fmt"
	"github.com/almanac-events/almanac/schemas"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

//go:embed *.sql
var sqlFiles embed.FS

// templates are the definitions of tables and views, by file name.
var templates = template.Must(template.ParseFS(sqlFiles, "*.sql"))

// CreateTable is the DDL of the topic's table, for its newest schema version.
func CreateTable(t *schemas.Topic, database string) string {
	return render(t, t.Spec().Table, database)
}

// render fills in a template of schemas/sql for the topic.
func render(t *schemas.Topic, file, database string) string {
	type field struct{ Name, Column string }
	fields := make([]field, len(t.Fields))
	for i := range t.Fields {
		f := &t.Fields[i]
		fields[i] = field{f.Name, columnSQL(t, f)}
	}
	var b strings.Builder
	err := templates.ExecuteTemplate(&b, file, map[string]any{
		"Database": database, "Topic": t.Name, "Table": QuotedTable(database, t.Name),
		"Fields": fields, "Identity": identitySQL(t), "Mark": t.TableComment(),
	})
	if err != nil {
		panic(err) // the templates are constants: a test runs all of them
	}
	return b.String()
}

// AddColumns is the DDL that gives an existing table the columns of t it lacks.
// Adding a column is metadata only: old rows read as their attributes have it (OlderSQL).
func AddColumns(t *schemas.Topic, database string) string {
	if len(t.Fields) == 0 {
		return ""
	}
	adds := make([]string, len(t.Fields))
	for i := range t.Fields {
		f := &t.Fields[i]
		after := schemas.ColAttributes
		if i > 0 {
			after = t.Fields[i-1].Name
		}
		adds[i] = fmt.Sprintf("ADD COLUMN IF NOT EXISTS %s %s AFTER %s", QuoteName(f.Name), columnSQL(t, f), QuoteName(after))
	}
	return "ALTER TABLE " + QuotedTable(database, t.Name) + " " + strings.Join(adds, ", ")
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
func Indexes(t *schemas.Topic) []Index {
	ddl := CreateTable(t, "")
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
