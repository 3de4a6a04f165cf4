// Package certs keeps the certificate by which listeners are known, and whom they trust, from files that are renewed.
//
// # Model
//
//	certificate, key, client CA ──▶ Files ──▶ TLS of the next connection
//
// The files are looked at twice a second, and taken once two looks found them the same: one that is half written may be whole by its form. What they hold counts for
// connections that are made from then on; those that are there stay. A certificate that a client showed is asked for its end at each request (package access).
//
// # Who is authoritative
//
// The newest set of files that fits together: a certificate that has begun to be valid and has not ended, its key, and a CA
// with at least one certificate.
//
// # Failures
//
// Files are not replaced at once. Those that do not fit change nothing, and are read again at the next look. OnError hears what is
// wrong twice, once until it is another error. At the start it is an error of Open.
package certs
