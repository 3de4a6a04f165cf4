// Package ops says how a process is: whether it lives and can work, its versions and its numbers.
//
// # Model
//
// Health answers /healthz, /readyz, /version and /metrics. A gateway serves it beside its own paths; another process
// gives it a listener of its own, which Server serves. Package metrics has the numbers and families makes them.
//
//	/healthz   the process answers
//	/readyz    200, or 503 with the reasons: how far the start is, draining, or what Probe's function says
//	/version   what the binary is made of
//	/metrics   the registry's numbers, for who has the right to them
//
// A Reason has a word, one of Words, for programs, and a sentence for people.
//
// # Failures
//
// A question to the servers ends after two seconds, and each of these paths is answered while they are away.
package ops
