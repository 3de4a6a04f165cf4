// Package integration proves what the README says, on real servers: the journey
// of an event, rotation, months, bad input, several routers and sinks, kills.
//
// Each test has a NATS server of its own, in process. It has a database of its own
// in one ClickHouse that the package's tests share (internal/embedded/embeddedtest).
//
// Some tests use real input. They find it in shared/data beside the repository, and skip
// with a message when it is not there.
package integration
