// Package maintenance proves and changes what is stored. Each verb is a package below it: verify and
// seals prove, repair and rebuild restore, erasure, retention and removal take out, deadletters,
// cleaner and billing move.
//
// Each begins with its crash points: where it may be killed, what that leaves, and what goes on.
package maintenance
