package registry

import (
	"slices"
	"time"
)

// lease is what this process saw of another's: the revision, and when it last
// changed on this process's own clock. No clock of another is ever compared.
type lease struct {
	rev  uint64
	at   time.Time
	gone bool // no process answered a probe since this revision
}

// survey updates what was seen of the others and says who is alive, and which
// of them missed a beat. blind is how long this process
// could not see any lease: no member can have fallen silent in it.
func survey(self string, seen map[string]lease, leases map[string]uint64, now time.Time, blind time.Duration) (live, silent []string) {
	for name := range seen {
		if _, ok := leases[name]; !ok {
			delete(seen, name)
		}
	}
	live = []string{self}
	for name, rev := range leases {
		if name == self {
			continue
		}
		l, ok := seen[name]
		if ok && l.rev == rev {
			l.at = l.at.Add(blind)
		} else {
			l = lease{rev: rev, at: now}
		}
		seen[name] = l
		switch age := now.Sub(l.at); {
		case l.gone || age >= LeaseExpiry:
		case age >= LeasePeriod/2: // two looks, one revision
			silent = append(silent, name)
			fallthrough
		default:
			live = append(live, name)
		}
	}
	slices.Sort(live)
	slices.Sort(silent)
	return live, silent
}

// blindFor returns how long no member's beat could be seen between two surveys. After a
// lost connection all of it counts, and so does an interval that several of one's
// own beats should have cut: whatever held those up held up the others' too. To
// call them dead at the first look after would move every share at once, for
// nothing.
func blindFor(last, now time.Time, reconnected bool) time.Duration {
	gap := now.Sub(last)
	if last.IsZero() || !reconnected && gap < 3*LeasePeriod {
		return 0
	}
	return gap
}

// owner is the member that hashes highest with key.
func owner(live []string, key string) string {
	var best string
	var top uint64
	for _, name := range live {
		if w := weight(name, key); best == "" || w > top || w == top && name > best {
			best, top = name, w
		}
	}
	return best
}

// weight is FNV-1a 64 of name and key, finished as SplitMix64 is, because FNV's
// high bits hardly move with the last bytes.
func weight(name, key string) uint64 {
	h := uint64(14695981039346656037)
	for _, s := range []string{name, "/", key} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
