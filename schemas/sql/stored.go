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

// WeightedIDs sums, of each of some shards, the ids of its rows, and each times its position.
type WeightedIDs struct {
	Table string
	Where string
	// Of each of Shards, rows are up to its UpTo; one below its Least counts as if it were there. Numbers, by commas.
	Shards, Least, UpTo string
	HashSQL             string
}

// SQL is the statement.
func (w WeightedIDs) SQL() string { return fill("tables/weighted_ids", w) }

// AtPositions is what shards have at some positions.
type AtPositions struct {
	Table string
	Where string
	// Positions are pairs of shard and position, by commas.
	Positions string
	IDSumSQL  string
}

// SQL is the statement.
func (a AtPositions) SQL() string { return fill("tables/at_positions", a) }
