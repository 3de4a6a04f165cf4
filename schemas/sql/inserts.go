package sql

// Statements of tables that store rows. Tables and columns are quoted; Frames is a source of rows,
// and what is called Keep a condition.

// Insert stores the rows of frames behind the head of a shard, and asserts it.
type Insert struct {
	Table string
	// Columns are those of an event, quoted, in a list.
	Columns      string
	Month        uint32
	Shard, Head  uint64
	Frames       string // a subquery
	Whole        string // the condition of rows that are the frames'
	Pos          string // the column of Frames that is the position
	Seconds      int    // that may pass until the rows flow
	Keep         string // "": all
	Moved, Tardy string // the texts of what ends it
	Same         SameTable
}

// SameTable asserts that a name still has the table that was looked at; without a UUID it asserts nothing. All are literals.
type SameTable struct{ Database, Name, UUID, Replaced string }

// NewSameTable is the assertion; replaced is the text of what fails it.
func NewSameTable(database, name, uuid, replaced string) SameTable {
	if uuid == "" {
		return SameTable{}
	}
	return SameTable{QuoteText(database), QuoteText(name), QuoteText(uuid), QuoteText(replaced)}
}

// SQL is the statement.
func (i Insert) SQL() string { return fill("tables/insert", i) }

// InsertMissing stores of the frames' rows those that are not there.
type InsertMissing struct {
	Table, Columns string
	Month          uint32
	Shard          uint64
	Above, UpTo    uint64 // positions
	Frames         string
	Whole          string
	Pos            string
	Same           SameTable
	Keep           string // "1": all
}

// SQL is the statement.
func (i InsertMissing) SQL() string { return fill("tables/insert_missing", i) }

// CopyRows stores rows of a shard of one table behind the head that it has in another.
type CopyRows struct {
	From, To, Columns string
	Month             uint32
	Shard, Above      uint64
	UpTo              uint64
	Moved             string
}

// SQL is the statement.
func (c CopyRows) SQL() string { return fill("tables/copy_rows", c) }

// Twins is, of some rows of a shard, (pos, id, ts) each, at which other positions the same row stands.
type Twins struct {
	Table string
	Month uint32
	Shard uint64
	Rows  string
}

// SQL is the statement.
func (t Twins) SQL() string { return fill("tables/twins", t) }

// CountTwins counts the rows at some positions that are the same as one of the shard elsewhere.
type CountTwins struct {
	Table       string
	Month       uint32
	Shard       uint64
	Above, UpTo uint64
}

// SQL is the statement.
func (c CountTwins) SQL() string { return fill("tables/count_twins", c) }
