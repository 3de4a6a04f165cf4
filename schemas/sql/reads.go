package sql

// Statements of readers of stored rows. Tables are quoted; Where is a condition.

// Positions counts the rows of each position, in order.
type Positions struct {
	Table, Where string
	// Above and UpTo bound the positions.
	Above, UpTo uint64
	// Limit bounds how many are listed; 0: all.
	Limit int
}

// SQL is the statement.
func (p Positions) SQL() string { return fill("tables/positions", p) }

// StoredRows is rows in the order of replay: by position, time and id.
type StoredRows struct {
	Table, Where string
	Columns      string
	Above, UpTo  uint64 // positions
	IDOrderSQL   string
}

// SQL is the statement.
func (r StoredRows) SQL() string { return fill("tables/stored_rows", r) }

// StoredIDs is, of some ids, the time and id of the events that are stored.
type StoredIDs struct {
	Table        string
	Month        uint32
	FromNs, ToNs int64  // both inclusive
	IDs          string // a list of quoted ids
}

// SQL is the statement.
func (i StoredIDs) SQL() string { return fill("tables/stored_ids", i) }

// Server is which engine answers: the databases that name it, the rows of Almanac's, the machine, when it
// started, and the formats that those databases say.
type Server struct {
	Engines  string // what their names begin with, quoted
	Database string // quoted
}

// SQL is the statement.
func (s Server) SQL() string { return fill("tables/server", s) }
