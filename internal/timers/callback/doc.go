// Package callback makes the HTTP call of a timer.
//
// # Model
//
// A call is one POST of a JSON document. Its answer, or what went wrong, becomes a timer.Verdict and
// a timer.Call. The caller of this package keeps count of calls at once; this package bounds what one
// call may cost: its time, the bytes of its answer, its connections.
//
// # What is never called
//
// The address is evaluated after the name was resolved, for each connection, in the dialer's Control. So a
// name that resolves to another address the next time is evaluated again. Refused are all addresses that
// IANA keeps for special purposes: loopback, private, link-local (cloud metadata), shared, documentation,
// multicast, mapped, NAT64, 6to4, Teredo. Public addresses are called on ports 80 and 443. Only the
// operator's AllowCIDRs open more, with the ports that they name, or else 80 and 443. No API can.
//
// Redirects are not followed, no proxy of the environment is used, certificates are verified, and the
// group's list of hosts is asked again at the call.
//
// # Failures
//
// A refused address is final (blocked-address). A name that has a refused address is unreachable, as one
// that does not have one: an answer tells neither which names the operator's network has nor who resolves them. A call that ends because its context ends has no
// outcome: ErrAborted. The timer stays claimed and is called again under the same attempt.
package callback
