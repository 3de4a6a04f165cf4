package request

// What slots are of, in the plural: a word for counts too.
const (
	OfTails       = "tails"
	OfStatements  = "statements"
	OfPings       = "pings"
	OfReads       = "reads"
	OfLooks       = "looks at statements"
	OfTiming      = "requests about timers and documents"
	OfPages       = "pages and batches of documents"
	OfPromQL      = "queries of PromQL"
	OfLogQL       = "queries of LogQL"
	OfFollowed    = "topics followed by LogQL"
	OfCalls       = "calls of assistants"
	OfExpressions = "readings by regular expressions"
)

// Sorts are all of them, and Limits why their slots refuse: an alert looks for an increase of each.
var (
	Sorts  = []string{OfTails, OfStatements, OfPings, OfReads, OfLooks, OfTiming, OfPages, OfPromQL, OfLogQL, OfFollowed, OfCalls, OfExpressions}
	Limits = []string{LimitFull, LimitShare}
)
