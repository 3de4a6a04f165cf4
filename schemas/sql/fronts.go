package sql

import "github.com/almanac-events/almanac/schemas/timer"

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

// NewestTimers is the newest stored transition of each timer.
type NewestTimers struct{ Table, Where string }

// SQL is the statement.
func (n NewestTimers) SQL() string {
	return fill("tables/newest_timers", struct {
		NewestTimers
		Created, Restored timer.Op
	}{n, timer.Created, timer.Restored})
}

// TimerLives is what the transitions of {lives:Array(String)} say, a row a revision.
type TimerLives struct{ Table string }

// SQL is the statement.
func (l TimerLives) SQL() string {
	return fill("tables/timer_lives", struct {
		TimerLives
		Created, Firing timer.Op
	}{l, timer.Created, timer.Firing})
}

// MeantTimers is the timers after {after_group:String} and {after_id:String} with records that fulfil a
// condition.
type MeantTimers struct {
	Table, Where string
	Meant        string // the condition
	Limit        int
}

// SQL is the statement.
func (m MeantTimers) SQL() string { return fill("tables/meant_timers", m) }
