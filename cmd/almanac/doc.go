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
// packages that do it, and prints. It decides nothing that belongs to them.
//
// The other files are what verbs share. What was asked for is in settings*.go and flags.go. Where the
// servers are is in connect.go, endpoints.go and servers.go. The parts of a process are in single.go and
// parts.go, its listeners in inputs.go, listen.go, listeners.go, http.go and otlp.go. What systemd hears is in
// supervisor.go, what the user reads in errorwords.go, exitcodes.go and output.go.
package main
