package timers

import (
	"fmt"
	"math/rand/v2"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// Break is a guard that is taken away.
type Break int

// The guards.
const (
	Nothing Break = iota
	ClaimWithoutExpectation
	OwnUnknownClaimSkipped
	CutAnswerBelieved
	UpdateWhileFiring
	AttemptRaisedOnSecondClaim
	CallBeforeClaim
	CleanerNotGated
	PurgeTakesLater
	RetryNamesOldSpec
	DeadOwnerKept
	EntryOfOlderRunKept
	NamesOfAnotherRun
)

// Breaks are all of them, by name.
var Breaks = map[string]Break{
	"claim without expectation": ClaimWithoutExpectation, "own unknown claim skipped": OwnUnknownClaimSkipped, "cut answer believed": CutAnswerBelieved,
	"update accepted while firing": UpdateWhileFiring, "attempt raised on a second claim": AttemptRaisedOnSecondClaim, "call before the claim": CallBeforeClaim,
	"cleaner not gated": CleanerNotGated, "purge takes what came later": PurgeTakesLater, "a retry names the old spec": RetryNamesOldSpec,
	"claims of the dead are kept": DeadOwnerKept, "an entry of an older run is kept": EntryOfOlderRunKept, "the names of another run": NamesOfAnotherRun,
}

// entry is a record of the front.
type entry struct {
	timer.Record
	nonce  uint64
	purged bool
}

// call is a callback that was made.
type call struct {
	timer.Record
	group string // whose settings and secret it goes by
	at    int64
	after int // records were in the log
	ok    bool
}

type world struct {
	rng    *rand.Rand
	broken Break
	quiet  bool // nothing fails any more
	now    int64
	log    []*entry
	late   []func()
	routed int
	rows   map[uint64]bool
	calls  []call
	dead   map[string]bool
	wrong  string
}

const keys = 2

func keyOf(n int) schemas.TimerKey {
	return schemas.NewTimerKey("timers", fmt.Sprint("g", n), fmt.Sprint("t", n), 16, 4)
}

func (w *world) fail(format string, a ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, a...)
	}
}

// chance is one of n, unless it is calm.
func (w *world) chance(n int) bool { return !w.quiet && w.rng.IntN(n) == 0 }

// gone reports whether an owner is known to be dead.
func (w *world) gone(owner string) bool { return w.dead[owner] && w.broken != DeadOwnerKept }

// last is a key's last record; nil where there is no such record.
func (w *world) last(key schemas.TimerKey) *entry {
	for i := len(w.log) - 1; i >= 0; i-- {
		if e := w.log[i]; e.Key == key && !e.purged {
			return e
		}
	}
	return nil
}

// specOf reads the spec of a record; nil if its record is gone.
func (w *world) specOf(r *timer.Record) *timer.Spec {
	if at := r.SpecAt(); at > 0 && at <= uint64(len(w.log)) && !w.log[at-1].purged {
		return w.log[at-1].Spec
	}
	return nil
}

// answer is what a writer hears.
type answer int

const (
	stored answer = iota
	refused
	unknown
)

// put writes a record that follows the one with sequence expect; anyway: whatever there is.
func (w *world) put(r timer.Record, expect, nonce uint64, anyway bool) (uint64, answer) {
	write := func() (uint64, answer) {
		last := uint64(0)
		if e := w.last(r.Key); e != nil {
			last = e.Seq
		}
		if last != expect && !anyway {
			return 0, refused
		}
		r.Seq = uint64(len(w.log) + 1)
		w.log = append(w.log, &entry{Record: r, nonce: nonce})
		return r.Seq, stored
	}
	switch {
	case w.chance(12): // lost on its way
		return 0, unknown
	case w.chance(12):
		w.late = append(w.late, func() { write() })
		return 0, unknown
	case w.chance(12): // its answer is lost
		write()
		return 0, unknown
	}
	return write()
}

// found tells a writer what became of its write: the first record of the key after expect is its own, another's, or not there.
func (w *world) found(key schemas.TimerKey, expect, nonce uint64) (uint64, answer) {
	for _, e := range w.log[expect:] {
		if e.Key == key && !e.purged {
			if e.nonce == nonce {
				return e.Seq, stored
			}
			return 0, refused
		}
	}
	return 0, unknown
}

// move makes a row of the next record.
func (w *world) move() {
	if w.routed == len(w.log) {
		return
	}
	e := w.log[w.routed]
	w.routed++
	if e.purged {
		w.fail("record %d left before it was routed", e.Seq)
	}
	w.rows[e.Seq] = true
}

// clean is a cleaner's round in two steps, between which others act.
func (w *world) clean(key schemas.TimerKey) (purge func()) {
	last := w.last(key)
	if last == nil || !last.State().Over() {
		return nil
	}
	for _, e := range w.log {
		if e.Key == key && !e.purged && !w.rows[e.Seq] && w.broken != CleanerNotGated {
			return nil
		}
	}
	upTo := last.Seq
	return func() {
		for _, e := range w.log {
			if e.Key == key && (e.Seq <= upTo || w.broken == PurgeTakesLater) {
				e.purged = true
			}
		}
	}
}
