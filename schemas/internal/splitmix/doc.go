// Package splitmix mixes bits: what SplitMix64 makes of its counter. Ids and the
// dictionaries of frames take their hashes from it. It is not for secrets.
package splitmix
