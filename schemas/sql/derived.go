package sql

import (
	"fmt"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// NoID is the id of the row in a table of repeats that says how far a shard was examined.
const NoID = "toUUID('00000000-0000-0000-0000-000000000000')"

// onceSQL are the columns that make two events of the topic the same one, quoted for SQL.
func onceSQL(t *schemas.Topic) string {
	cols := t.Once()
	quoted := make([]string, len(cols))
	for i, c := range cols {
		quoted[i] = QuoteName(c)
	}
	return strings.Join(quoted, ", ")
}

// CreateDerived is the DDL of a derived table.
func CreateDerived(t *schemas.Topic, database, name string) string {
	file := map[string]string{schemas.DerivedRepeats: "repeats.sql", schemas.DerivedSums: "meter_sums.sql", schemas.DerivedSeries: "metric_series.sql"}[name]
	return runSQL(file, map[string]any{"Derived": derived(t, database, name), "Mark": derivedMark})
}

// derivedMark is the comment of derived tables; it begins as no topic's table's does.
const derivedMark = "derived by almanac"

func derived(t *schemas.Topic, database, name string) string {
	return QuotedTable(database, schemas.DerivedTable(t.Name, name))
}

// OnceSelect selects the topic's events without repeats.
func OnceSelect(t *schemas.Topic, database string) string {
	return runSQL("once.sql", map[string]any{"Table": QuotedTable(database, t.Name), "Repeats": derived(t, database, schemas.DerivedRepeats)})
}

// RepeatsSelect selects, as rows of the table of repeats, the events that must not count
// because of rows that fulfil a condition, wherever they are stored among the rows that fulfil in: those of a lane
// (InLane), or of some. All copies of an event have one lane.
func RepeatsSelect(t *schemas.Topic, database, in, newRows string) string {
	file := "repeats_select.sql"
	if t.OnceWithin > 0 {
		file = "repeats_within.sql"
	}
	found, by := foundSQL(t)
	return runSQL(file, map[string]any{
		"Table": QuotedTable(database, t.Name), "Once": onceSQL(t), "Found": found, "FoundBy": by, "InTime": len(t.Spec().FoundBy) > 0, "In": in, "New": newRows, "Last": t.Spec().Wins == kinds.Last, "Within": int64(t.OnceWithin / time.Second), "Said": saidSQL(t),
	})
}

// foundSQL are the columns that find candidates for copies, which are then compared by the true columns: as the left side of
// IN, and as a list.
func foundSQL(t *schemas.Topic) (found, by string) {
	if cols := t.Spec().FoundBy; len(cols) > 0 {
		by = strings.Join(cols, ", ")
		return "(" + by + ")", by
	}
	return schemas.ColIdentity, schemas.ColIdentity
}

// identitySQL is what the column of a topic's table is a hash of that finds candidates for copies; "": it does not have one.
func identitySQL(t *schemas.Topic) string {
	if len(t.Spec().FoundBy) > 0 {
		return ""
	}
	return onceSQL(t)
}

// saidSQL is what two events that are the same one must say alike: else a copy contradicts.
func saidSQL(t *schemas.Topic) string {
	if t.Kind == kinds.Meter {
		return fmt.Sprintf("sipHash64(%s, %s)", kinds.ColDelta, schemas.ColUserID)
	}
	return "toUInt64(0)"
}

// AboveSQL is the condition of a shard's rows with positions above from and up to to.
func AboveSQL(ref schemas.ShardRef, from, to uint64) string {
	return fmt.Sprintf("month = %d AND shard = %d AND pos > %d AND pos <= %d", uint32(ref.Month), uint64(ref.ID), from, to)
}

// ExamineRepeats is the statement that marks the repeats which rows of a lane that fulfil a condition
// are or make. It may run any number of times and at any time.
func ExamineRepeats(t *schemas.Topic, database string, lane int, newRows string) string {
	return fmt.Sprintf("INSERT INTO %s (month, shard, pos, id, first, first_month, first_shard, other) %s",
		derived(t, database, schemas.DerivedRepeats), RepeatsSelect(t, database, InLane(lane), newRows))
}

// BeginExamined is the statement that begins the examinations of a shard: it enters their
// epoch, which goes with the marks when these are dropped.
func BeginExamined(t *schemas.Topic, database string, ref schemas.ShardRef, epoch uint64) string {
	return fmt.Sprintf("INSERT INTO %s (month, shard, pos, id, rows, first_shard) SELECT %d, %d, 0, %s, 0, %d", derived(t, database, schemas.DerivedRepeats), uint32(ref.Month), uint64(ref.ID), NoID, epoch)
}

// MarkExamined is the statement that says up to which position a shard was examined, and how
// many rows it had up to there before, and how many marks it has. It asserts that the epoch is there: without it marks
// were dropped since the examination began, and the position would say that they are there.
func MarkExamined(t *schemas.Topic, database string, ref schemas.ShardRef, epoch, to, rows uint64, headMoved string) string {
	return fill("tables/mark_examined", map[string]any{
		"Repeats": derived(t, database, schemas.DerivedRepeats), "Month": uint32(ref.Month), "Shard": uint64(ref.ID),
		"Epoch": epoch, "To": to, "Rows": rows, "Moved": headMoved,
	})
}

// FillSums is the statement that adds a shard's rows above from, up to to, to its sums. It
// asserts that the sums reach up to from, and that the shard was examined up to to.
func FillSums(t *schemas.Topic, database string, ref schemas.ShardRef, from, to uint64, headMoved string) string {
	return runSQL("meter_sums_fill.sql", map[string]any{
		"Derived": derived(t, database, schemas.DerivedSums), "Repeats": derived(t, database, schemas.DerivedRepeats), "Table": QuotedTable(database, t.Name),
		"Month": uint32(ref.Month), "Shard": uint64(ref.ID), "From": from, "To": to, "EndMs": ref.Month.End() / 1e6, "HeadMoved": headMoved,
	})
}

// SeriesSelect selects, as rows of the table of series, those that rows with a condition have.
func SeriesSelect(t *schemas.Topic, database, rows string) string {
	return runSQL("metric_series_select.sql", map[string]any{"Table": QuotedTable(database, t.Name), "Rows": rows})
}

// FillSeries is the statement that lists the series of a shard's rows above from, up to to. It
// may run any number of times.
func FillSeries(t *schemas.Topic, database string, ref schemas.ShardRef, have, from, to uint64, headMoved string) string {
	return runSQL("metric_series_fill.sql", map[string]any{
		"Derived": derived(t, database, schemas.DerivedSeries), "Month": uint32(ref.Month), "Shard": uint64(ref.ID), "To": to, "Have": have, "HeadMoved": headMoved,
		"Select": SeriesSelect(t, database, AboveSQL(ref, from, to)), "Table": QuotedTable(database, t.Name), "Rows": AboveSQL(ref, from, to),
	})
}

func runSQL(file string, data map[string]any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, file, data); err != nil {
		panic(err) // the templates are constants: a test runs them
	}
	return strings.TrimSpace(b.String())
}
