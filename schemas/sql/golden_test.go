package sql

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// The definition of each kind's table and views is written down: a change of it shows.
// UPDATE_GOLDEN=1 writes it again. What all tables share is written down once, in
// table_shared.sql, which is edited by hand.
func TestTablesOfKinds(t *testing.T) {
	for _, s := range kinds.Specs() {
		t.Run(string(s.Kind), func(t *testing.T) {
			topic := schemas.NewTopicOf(s.Kind, "things", schemas.Field{Name: "region", Type: schemas.TypeLowCardinality})
			var b strings.Builder
			b.WriteString(CreateTable(&topic, "db") + ";\n")
			for _, v := range Views(&topic, "db") {
				if strings.HasPrefix(v.Name, topic.Name) {
					b.WriteString("\n-- view " + v.Name + "\n" + v.Select + ";\n")
				}
			}
			golden(t, "table_"+string(s.Kind)+".sql", b.String())
		})
	}
	t.Run("log with once_by", func(t *testing.T) {
		topic := schemas.NewTopic("things")
		topic.OnceBy, topic.LaneBy = []string{schemas.ColService, "request"}, []string{schemas.ColService, "request"}
		topic.Fields = []schemas.Field{{Name: "request", Type: schemas.TypeString, Since: 1}}
		if err := topic.Validate(); err != nil {
			t.Fatal(err)
		}
		golden(t, "table_log_once_by.sql", CreateTable(&topic, "db")+";\n")
	})
}

// golden compares the definition of a table with a file, in which each shared part is its
// name alone. Every table has every shared part, once and to the letter.
func golden(t *testing.T, file, got string) {
	t.Helper()
	for part := range strings.SplitSeq(readTestdata(t, "table_shared.sql"), sharedPart) {
		name, text, named := strings.Cut(part, "\n")
		if !named {
			continue // before the first part
		}
		if n := strings.Count(got, text); n != 1 {
			t.Errorf("the shared part %q of table_shared.sql is in the table %d times, not once", name, n)
		}
		got = strings.Replace(got, text, sharedPart+name+"\n", 1)
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(filepath.Join("testdata", file), []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got != readTestdata(t, file) {
		t.Errorf("%s differs; it is now\n%s", file, got)
	}
}

// sharedPart begins the line that names a shared part.
const sharedPart = "-- shared: "

func readTestdata(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
