package sql

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The statements of tables are written down: a change of one shows.
// UPDATE_GOLDEN=1 writes them again.
func TestStatementsOfTables(t *testing.T) {
	const table = "`db`.`things`"
	missing := InsertMissing{Table: table, Columns: "`ts`, `id`", Month: 202601, Shard: 5, Above: 3, UpTo: 9, Frames: "(SELECT 1)", Whole: "1", Pos: "_pos", Keep: "1"}
	insert := Insert{Table: table, Columns: "`ts`, `id`", Month: 202601, Shard: 5, Head: 7, Frames: "(SELECT 1)", Whole: "1", Pos: "_pos", Seconds: 20, Moved: "moved", Tardy: "tardy"}
	kept := insert
	kept.Keep = "user_id = {u:String}"
	var b strings.Builder
	for _, s := range []interface{ SQL() string }{
		insert, kept, missing,
		CopyRows{From: "a", To: "b", Columns: "`ts`, `id`", Month: 202601, Shard: 5, Above: 3, UpTo: 9, Moved: "moved"},
		Twins{Table: table, Month: 202601, Shard: 5, Rows: "(1,'2',3)"},
		CountTwins{Table: table, Month: 202601, Shard: 5, Above: 3, UpTo: 9},
		NewestDocuments{Table: table, Where: "1"},
		MeantDocuments{Table: table, Where: "1", Meant: "user_id = {u:String}", Limit: 9},
		NewestTimers{Table: table, Where: "1", Created: "created", Restored: "restored"},
		TimerLives{Table: table, Where: "1", Created: "created", Firing: "firing"},
		MeantTimers{Table: table, Where: "1", Meant: "user_id = {u:String}", Limit: 9},
		Leftovers{Database: "'db'", Table: "'things'", Partition: "'p'", UpTo: 99},
		Marked{Repeats: "`db`.`things.repeats`"},
		TimerCalls{Table: table, SpanNs: 60},
		TimerRefused{Table: table, SpanNs: 60},
		FrontRows{Table: table, Says: "version", Months: "202601", FromSQL: "a", ToSQL: "b", Seqs: "1,2"},
		Positions{Table: table, Where: "1", Above: 3, UpTo: 9},
		Positions{Table: table, Where: "1", Above: 3, UpTo: 9, Limit: 7},
		StoredRows{Table: table, Where: "1", Columns: "ts, pos", Above: 3, UpTo: 9, IDOrderSQL: "toUInt128(id)"},
		StoredIDs{Table: table, Month: 202601, FromNs: 1, ToNs: 2, IDs: "'a', 'b'"},
		WeightedIDs{Table: table, Where: "1", Shards: "5,6", Least: "3,1", UpTo: "9,8", HashSQL: "cityHash64(id)"},
		AtPositions{Table: table, Where: "1", Positions: "(5,9),(6,8)", IDSumSQL: "sum(cityHash64(id))"},
	} {
		fmt.Fprintf(&b, "-- %T\n%s;\n\n", s, s.SQL())
	}
	const file = "testdata/statements_tables.sql"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.String(); got != readTestdata(t, "statements_tables.sql") {
		t.Errorf("%s differs; it is now\n%s", file, got)
	}
}

// A line of a template that is for its reader is not sent.
func TestRemarksAreNotSent(t *testing.T) {
	for _, tmpl := range statements.Templates() {
		if tmpl.Tree == nil {
			continue
		}
		for line := range strings.Lines(tmpl.Tree.Root.String()) {
			if strings.HasPrefix(strings.TrimSpace(line), "--") {
				t.Errorf("%s would send %q", tmpl.Name(), line)
			}
		}
	}
}
