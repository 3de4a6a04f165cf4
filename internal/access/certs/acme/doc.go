// Package acme has the certificates of listeners issued by an authority that speaks ACME, and renewed.
//
// # Model
//
//	host names ──▶ Issuer ──▶ authority (order, challenge tls-alpn-01, certificate) ──▶ Dir ──▶ TLS of the next connection
//
// golang.org/x/crypto/acme/autocert does it. The account, the certificates and their keys are files of mode 0600 in a directory
// of mode 0700, so that a restart asks for nothing. A certificate is renewed 30 days before its end, or with a third of its life
// left where that is less. The authority proves that the
// names are ours by a connection to their port 443, which must lead to one of the listeners.
//
// # Bounds
//
// Only the Issuer asks the authority, from when the first listener serves. After a failure it waits, from two minutes up to two hours:
// authorities count failures. A client never makes it ask: one that names another host, or comes too early, is refused in its handshake.
// One that names no host gets the certificate of the first.
//
// # Failures
//
// OnError hears why there is no certificate yet. Certificates that are there stay in use while the authority is away. Autocert tries a
// renewal again after 30 to 60 minutes and tells no one why it failed. So each host is looked at every hour: where a third of the time
// for a renewal is over, OnError hears the last refusal of the authority, once a day. Missing and Ends are for metrics and alerts.
package acme
