// Package records says what the records of a front are.
//
// # Model
//
// A front is one stream for several kinds of topics. Those who bring it against its table ask this package. It
// knows how a record is read, which row it became, and what the two say of each other.
//
// # Failures
//
// A read is complete or an error. What is not a record is passed over: a router keeps it as a dead letter.
package records
