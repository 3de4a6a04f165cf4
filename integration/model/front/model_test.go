package front

import (
	"flag"
	"iter"
	"math/rand/v2"
	"testing"
)

var (
	seeds = flag.Int("seeds", 10_000, "how many seeds TestModel plays")
	seed  = flag.Int64("seed", -1, "play this seed alone")
)

// part is one at work.
type part struct {
	role  int
	next  func() (struct{}, bool)
	stop  func()
	sleep int
}

const (
	roleWriter = iota
	roleMover
	roleSink
	roleCleaner
	roleReader
	roleBatcher
	roleLocker
	roleJanitor
)

// play plays one seed, and returns what went wrong.
func play(seed uint64, off Break) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 16)), off: off, members: map[int]int{}, releasedToken: map[int]bool{},
		at: map[int]int{}, marked: map[int]bool{}, dropped: map[int]bool{}, expired: map[int]bool{}}
	retains := seed/2%2 == 1 // without retention the others get further
	start := func(role int) *part {
		key, remove := w.rnd.IntN(keys), w.rnd.IntN(4) == 0
		if retains && w.steps > quietFrom {
			key = 1 // a batch changes the next one too
		}
		p := &part{role: role}
		p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
			next := func() bool { return yield(struct{}{}) }
			switch role {
			case roleWriter:
				w.writer(key, remove, next)
			case roleMover:
				w.mover(next)
			case roleSink:
				w.sink(next)
			case roleCleaner:
				w.cleaner(next)
			case roleReader:
				w.reader(next)
			case roleBatcher:
				w.batcher(key, next)
			case roleLocker:
				w.locker(key, next)
			case roleJanitor:
				w.janitor(next)
			}
		})
		return p
	}
	var parts []*part
	writers := []int{roleWriter, roleWriter, roleWriter}
	if seed%2 == 1 { // with more of them at once no document is left alone until it is cold
		writers = []int{roleWriter, roleBatcher, roleLocker, roleLocker}
	}
	if retains {
		writers = append(writers, roleJanitor, roleJanitor)
	}
	for _, role := range append(writers, roleMover, roleMover, roleSink, roleCleaner, roleCleaner, roleReader) {
		parts = append(parts, start(role))
	}
	defer func() {
		for _, p := range parts {
			p.stop()
		}
	}()
	for w.steps = 1; w.steps < 1200 && len(w.problems) == 0; w.steps++ {
		p := parts[w.rnd.IntN(len(parts))]
		if p.sleep > w.steps {
			continue
		}
		switch w.rnd.IntN(60) {
		case 0: // it is killed where it is
			w.faults[0]++
			p.stop()
			*p = *start(p.role)
			continue
		case 1: // it stalls, and goes on with what it knew
			w.faults[2]++
			p.sleep = w.steps + w.rnd.IntN(2*resolve)
			continue
		}
		if _, more := p.next(); !more {
			*p = *start(p.role)
		}
	}
	rest(w, start)
	return w
}

// rest lets what was accepted come to the table: no faults, and no writers.
func rest(w *world, start func(int) *part) {
	if len(w.problems) > 0 {
		return
	}
	mover, sink := start(roleMover), start(roleSink)
	defer mover.stop()
	defer sink.stop()
	for range 10 * (w.lastSeq + 10) {
		w.steps++
		_, _ = mover.next()
		_, _ = sink.next()
	}
	w.check()
}

// caughtIn is how many seeds a break survives.
func caughtIn(n int, off Break) (int, []string) {
	for s := range n {
		if w := play(uint64(s), off); len(w.problems) > 0 {
			return s, w.problems
		}
	}
	return n, nil
}

// The protocol holds, whatever happens.
func TestModel(t *testing.T) {
	t.Parallel()
	if *seed >= 0 {
		if w := play(uint64(*seed), 0); len(w.problems) > 0 {
			t.Fatal(w.problems)
		}
		return
	}
	var faults [3]int
	told, stubs, dropped, expired := 0, 0, 0, 0
	for s := range *seeds {
		w := play(uint64(s), 0)
		if len(w.problems) > 0 {
			t.Fatalf("seed %d: %v", s, w.problems)
		}
		for i, n := range w.faults {
			faults[i] += n
		}
		told += len(w.told)
		dropped, expired = dropped+len(w.dropped), expired+len(w.expired)
		for _, m := range w.front {
			if m.kind == stub {
				stubs++
			}
		}
	}
	t.Logf("%d seeds: %d kills, %d lost answers, %d stalls, %d versions acknowledged, %d stubs at the end, %d shards dropped, %d documents with them", *seeds, faults[0], faults[1], faults[2], told, stubs, dropped, expired)
	if told == 0 || stubs == 0 || expired == 0 || faults[0]*faults[1]*faults[2] == 0 {
		t.Error("something never happened: the test has lost its bite")
	}
}

// Every guard that is removed is missed.
func TestMutants(t *testing.T) {
	t.Parallel()
	for name, off := range Mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 5000
			n, how := caughtIn(most, off)
			if n == most {
				t.Fatalf("it survives %d seeds", most)
			}
			t.Logf("caught by seed %d: %s", n, how[0])
		})
	}
	for name, off := range Covered {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const least = 300
			if n, how := caughtIn(least, off); n < least {
				t.Fatalf("it is not covered: seed %d, %v", n, how)
			}
		})
	}
}
