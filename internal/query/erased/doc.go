// Package erased says which records of a front an erasure with a filter means. What the record's
// headers say, its user and its time, package ledger judges by itself.
//
// # Model
//
// A record is evaluated as the row that it becomes, so its result is that which the erasure's
// statement gave:
//
//	record ─▶ row ─▶ filter.Evaluator ─▶ surely yes, surely no
//	                      └ unsure ─▶ ClickHouse, by the erasure's condition
//
// Nothing is read from a table: the rows go with the statement. So the result is the same
// whether the record's own row is there or not.
//
// # Failures
//
// Of an erasure that was redacted the filter is not known. No record can be evaluated by it
// (ErrRedacted). Where ClickHouse does not answer and the result is not sure, that is an error.
package erased
