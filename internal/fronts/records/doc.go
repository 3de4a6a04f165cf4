// Package records says what the records of a front are: a kind of topics with a front is one value here (Kind).
//
// # Model
//
// A front is one stream for several kinds of topics. verify, repair, the cleaner and erasures bring it against its table.
// None of them knows documents from timers: they ask the topic's Kind.
//
//	Of(topic) ─▶ Kind ─▶ Parse: a message is a Record      Newest: what ClickHouse has of each key
//	                 └▶ Compare: what the two say of each other
//
// A key is named by its subject. A new kind is a value like Documents or Timers, with its statements beside it (rowsdocuments.go, rowstimers.go).
//
// # Failures
//
// A read is complete or an error. What is not a record is passed over: a router keeps it as a dead letter.
package records
