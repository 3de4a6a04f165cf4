// Command almanac is an event log you can query: one binary that runs all of it
// on a laptop, or one part of it in production.
//
//	almanac up                    everything in one process tree, until Ctrl-C
//	almanac send app < lines      events in
//	almanac query | tail | sql    events out
//	almanac verify | doctor       proof that nothing is lost, and what is wrong
//	almanac router | sink         one part each
//
// A verb is a file of its name: send.go, docs_import.go. It reads what the user asked for, wires the
// packages that do it, and prints; it decides nothing that belongs to them. The other files are what
// verbs share: settings*.go and flags.go what was asked for, connect.go, endpoints.go and servers.go where
// the servers are, single.go and parts.go the parts of a process, supervisor.go what systemd hears,
// listen.go, listeners.go, http.go and otlp.go its listeners, errorwords.go, exitcodes.go and output.go
// what the user reads.
package main
