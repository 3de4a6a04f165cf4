package ops

import "fmt"

// Word is why a process is not ready, for programs.
type Word string

// All words that there are.
const (
	Starting   Word = "starting"        // it does not have its servers yet
	Recovering Word = "recovering"      // what is stored is read, or made again
	Draining   Word = "draining"        // a signal asked it to stop
	Away       Word = "server_away"     // NATS or ClickHouse does not answer
	NoLeader   Word = "no_leader"       // servers of NATS elect, or a majority is away
	Unaccepted Word = "account_refused" // NATS or ClickHouse refuses the account
	RightGone  Word = "right_missing"   // a user of NATS or an account of ClickHouse may not do what the process needs
	StreamFull Word = "stream_full"     // EVENTS has no room
	DiskFull   Word = "disk_full"       // NATS stores nothing for want of room on its disk
	Stalled    Word = "stalled"         // events are sent, and nothing acknowledges them
)

// Words are all of them, with what each means.
var Words = []struct {
	Word  Word
	Means string
}{
	{Starting, "it does not have its servers yet"},
	{Recovering, "it reads or restores what is stored"},
	{Draining, "a signal asked it to stop"},
	{Away, "NATS or ClickHouse does not answer"},
	{NoLeader, "a stream of NATS servers that elect has no leader now, or a majority of them is away"},
	{Unaccepted, "NATS or ClickHouse refuses the account of the process, or its password"},
	{RightGone, "the user of NATS or an account of ClickHouse may not do something that the process needs"},
	{StreamFull, "the stream EVENTS has no room for more"},
	{DiskFull, "NATS stores nothing, because its disk is full or failing"},
	{Stalled, "events are sent to NATS and are not acknowledged"},
}

// Reason is why a process is not ready, or what it cannot do although it is.
type Reason struct {
	Word Word `json:"reason"`
	// Says is what happened, for people.
	Says string `json:"message"`
	// Partial says that the process does its main work all the same.
	Partial bool `json:"-"`
}

// String returns both.
func (r Reason) String() string { return string(r.Word) + ": " + r.Says }

// Because makes a reason.
func Because(w Word, format string, args ...any) Reason {
	return Reason{Word: w, Says: fmt.Sprintf(format, args...)}
}

// Readiness is what /readyz answers with.
type Readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []Reason `json:"reasons"`
	// Impaired is what the process cannot do, whether it is ready or not.
	Impaired []Reason `json:"impaired,omitempty"`
	// Sync is how the server writes to disk ("always"); empty where that is not known.
	Sync string `json:"sync"`
}
