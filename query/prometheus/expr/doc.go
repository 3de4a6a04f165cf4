// Package expr reads expressions of Prometheus's language. It refuses those that have the engine work or allocate without an
// end. It reads no series.
package expr
