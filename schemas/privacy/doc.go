// Package privacy applies a topic's privacy rules to an event before it enters a frame.
//
// schemas.Private declares a rule, and schemas.RuleNames says which names it covers. Rules
// are those of one topic, with the key of its hashes. Apply changes an event, Clean a JSON
// object that cannot become one, Ruled one text, as a filter needs it. Without a key, what
// should be hashed is dropped and never stored as it came. A value that is not what a rule
// is for is dropped: it cannot be told what it would give away.
//
// MaskedURL and MaskedError take passwords out of addresses before these are shown.
//
// Nothing here does I/O or reads the clock; Rules may be used by many goroutines at once.
package privacy
