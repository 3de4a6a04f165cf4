// Package keep keeps the tokens that are valid now, from the places where they are written.
//
// # Model
//
//	tokens.yaml ──┐
//	environment ──┼──▶ Keeper ──▶ Authenticate
//	local token ──┘
//
// A file is looked at twice a second. What it says holds within two seconds, without a restart, once two looks
// found it the same. Who asks with a token that is not known waits for those looks where the file was changed.
// The local token is made by the first `up` of a data directory and may do everything.
//
// # Who is authoritative
//
// The file. The registry holds no tokens: a NATS from an older copy would bring back those that were
// removed, and all who may write the registry could make some.
//
// # Failures
//
// A file that cannot be read, or is not one of tokens, changes nothing. OnError hears it, once until it
// is another error. One that is there at the start and broken is an error of Open. A file that others may read is refused.
package keep
