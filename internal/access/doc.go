// Package access decides who may do what.
//
// # Model
//
//	secret ──▶ Tokens.Authenticate ──▶ Principal ──▶ May(action, topic)
//
// A token may have a row limit: a filter of the rows that it reads. Who serves reads joins it with theirs
// (query/filter, Limit), and refuses what cannot be narrowed (MayAll).
//
// A token has a name, roles with topics, an end, networks that it may come from, and rates. Its
// secret is shown once and kept as a digest. A principal is who asks: the holder of a token, the local token of an `up`,
// or a client without a secret on loopback.
//
// It is pure: no I/O and no clock. Who asks reads the file and the registry, and gives the time.
//
// # Who is authoritative
//
// The newest set that could be read. A broken file changes nothing; who reads it says so.
//
// # Failures
//
// A secret that is unknown, wrong, past its end or from another network gives one error and
// takes one time, so that nothing is learnt by trying. The reason is for the log of the gateway alone.
package access
