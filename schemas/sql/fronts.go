package sql

// Statements of tables about rows that records of a front became. Tables are quoted, and a Where is
// a condition.

// NewestDocuments is the newest stored version of each document.
type NewestDocuments struct{ Table, Where string }

// SQL is the statement.
func (n NewestDocuments) SQL() string { return fill("tables/newest_documents", n) }

// MeantDocuments is the documents after {after:String} with versions that fulfil a condition.
type MeantDocuments struct {
	Table, Where string
	Meant        string // the condition
	Limit        int
}

// SQL is the statement.
func (m MeantDocuments) SQL() string { return fill("tables/meant_documents", m) }

// NewestTimers is the newest stored transition of each timer, and whether the beginning of its
// life (timer.Record.Life: one creation of its id) is stored: verify names a live timer without one.
type NewestTimers struct {
	Table, Where      string
	Created, Restored string // what transitions are called that begin a life
}

// SQL is the statement.
func (n NewestTimers) SQL() string { return fill("tables/newest_timers", n) }

// TimerLives is what the transitions of {lives:Array(String)} say, a row a revision.
type TimerLives struct {
	Table, Where    string
	Created, Firing string // what transitions are called
}

// SQL is the statement.
func (l TimerLives) SQL() string { return fill("tables/timer_lives", l) }

// MeantTimers is the timers after {after_group:String} and {after_id:String} with records that fulfil a
// condition.
type MeantTimers struct {
	Table, Where string
	Meant        string // the condition
	Limit        int
}

// SQL is the statement.
func (m MeantTimers) SQL() string { return fill("tables/meant_timers", m) }

// TimerCalls counts the calls that ended within the last SpanNs, by group, as JSON.
type TimerCalls struct {
	Table  string
	SpanNs int64
}

// SQL is the statement.
func (c TimerCalls) SQL() string { return fill("tables/timer_calls", c) }

// TimerRefused names the groups whose timer that was over last, within the last SpanNs, had failed, as JSON.
type TimerRefused struct {
	Table  string
	SpanNs int64
}

// SQL is the statement.
func (r TimerRefused) SQL() string { return fill("tables/timer_refused", r) }

// FrontRows is the rows of records of a front, as JSON.
type FrontRows struct {
	Table  string
	Says   string // the column that tells what the record said
	Months string // a list; the range of time prunes shards and parts
	// FromSQL and ToSQL bound the time, and Seqs lists the records.
	FromSQL, ToSQL, Seqs string
}

// SQL is the statement.
func (r FrontRows) SQL() string { return fill("tables/front_rows", r) }
