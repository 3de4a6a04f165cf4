package cleaner

// act is what is done with a key.
type act int

const (
	leave   act = iota // nothing is to be done
	hold               // something of it is not stored: it stays as it is
	stub               // its last record becomes a stub, and takes the place of all others
	refresh            // its last record is put again, and takes the place of all others
	purge              // its messages up to a sequence are purged
)

// keyState is what a walk found of a key.
type keyState struct {
	// seen are the sequences of its records that the walk met, in order: they are old enough.
	seen []uint64
	// stored: each of them has its row in ClickHouse.
	stored bool
	// last is the sequence of the key's last message now; 0: none is left.
	last uint64
	// misplaced: the last message is not a record. over: the key is over with it.
	misplaced, over bool
	// whole: records of this kind leave with their key alone.
	whole bool
}

// decide says what becomes of a key, and of a purge up to which sequence, with it. cold:
// the walk went to what is no longer hot; else to what is settled. What it says holds as
// long as the key's last message is the one seen: writes expect it, and a purge
// ends at what was seen.
func decide(s *keyState, cold bool) (act, uint64) {
	newest := s.seen[len(s.seen)-1]
	switch {
	case s.last == 0:
		return leave, 0
	case !s.stored || s.misplaced:
		return hold, 0
	case s.last > newest && s.whole, s.last < newest:
		return leave, 0
	case s.last > newest: // what was seen are older versions
		return purge, newest
	case s.over && cold:
		return purge, newest
	case s.whole:
		return leave, 0
	case s.over && len(s.seen) > 1:
		return purge, s.seen[len(s.seen)-2]
	case s.over:
		return leave, 0
	case cold:
		return stub, 0
	case len(s.seen) > 1:
		return refresh, 0
	}
	return leave, 0
}
