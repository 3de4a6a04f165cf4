package sql

// Statements of tables about what is stored and marked. Tables are quoted.

// Leftovers counts the parts of a partition that are unused and still on disk. Names are quoted texts.
type Leftovers struct {
	Database, Table, Partition string
	UpTo                       int64 // Unix seconds
}

// SQL is the statement.
func (l Leftovers) SQL() string { return fill("tables/leftovers", l) }

// Marked is, of each shard, what its table of repeats says.
type Marked struct{ Repeats string }

// SQL is the statement.
func (m Marked) SQL() string { return fill("tables/marked", m) }

// WeightedIDs sums the ids of a shard's rows, and each times its position.
type WeightedIDs struct {
	Table string
	Month uint32
	Shard uint64
	// Rows are up to UpTo; one below Least counts as if it were there.
	Least, UpTo uint64
	HashSQL     string
}

// SQL is the statement.
func (w WeightedIDs) SQL() string { return fill("tables/weighted_ids", w) }
