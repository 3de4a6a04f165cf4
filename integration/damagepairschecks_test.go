package integration

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/schemas/timer"
)

// knownPairs are cells that do not do yet what they must, and why. What a cell finds wrong is
// logged then. One that finds nothing wrong fails a full run: it is to be taken out.
var knownPairs = map[string]string{}

// playPair plays one cell and says what became of it.
func playPair(t *testing.T, c pairCell) string {
	h := startPair(t, c)
	h.first()
	h.copied()
	h.second()
	h.putAll()
	var wrong []string
	fault := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }

	repaired := false
	if h.reopen() {
		h.heal()
		repaired = true
	}
	h.parts()
	if !h.knows(firstPerson) {
		return h.leftAlone()
	}
	h.ways("after the start", fault)
	for _, r := range h.third(1) {
		h.logf("refused at first: %s", r)
	}
	left := h.sendLeft()
	_, again := h.healed(fault)
	repaired = repaired || again
	if left != nil {
		h.logf("the spool was refused at first: %v", left)
		h.must(h.sendLeft())
	}
	for _, r := range h.third(2) {
		fault("refused after repair: %s", r)
	}
	rep, more := h.healed(fault)
	repaired = repaired || more

	lost := h.compareEvents(rep, fault)
	named := h.compareDocuments(rep, fault) + h.compareTimers(rep, fault)
	h.compareCounts(rep, lost, named, fault)
	h.compareLagging(fault)
	h.takenAgain(fault)
	h.ways("at the end", fault)
	h.search(fault)

	outcome := healedItself
	switch {
	case len(wrong) > 0:
		outcome = "failed: " + wrong[0]
	case !rep.OK():
		outcome = fmt.Sprintf("named: %d events, %d documents and timers are lost", lost, named)
	case lost > 0:
		outcome = "as of the copy: nothing tells of more"
	case repaired:
		outcome = healedByRepair
	}
	if !h.knows(secondPerson) {
		outcome += "; no store knows of the erasure since the copy"
	}
	why, known := knownPairs[c.String()]
	switch {
	case len(wrong) > 0 && known:
		t.Logf("known (%s): %s", why, strings.Join(wrong, "\n"))
		return "known: " + why
	case len(wrong) > 0:
		t.Errorf("%s:\n%s\nverify: %+v\n%s", c, strings.Join(wrong, "\n"), rep.Totals, strings.Join(rep.Problems, "\n"))
	case known && os.Getenv(damagePairsEnv) != "":
		t.Errorf("%s is as it must be: take it out of the known ones (%s)", c, why)
	}
	t.Logf("%s: %s", c, outcome)
	return outcome
}

// sendLeft sends what the spool has, which is of before the damage.
func (h *pairCluster) sendLeft() error {
	h.t.Helper()
	switch h.cell.state(storeSpool) {
	case "":
		return h.sendSpool("b-", afterDamage)
	case putOlder:
		return h.sendSpool("a-", sinceCopy)
	}
	return nil
}

// proofFronts is what verify says of everything, with the fronts.
func (h *pairCluster) proofFronts() (*verify.Report, error) {
	h.t.Helper()
	v, err := verify.New(h.connect(), h.reg, h.db)
	h.must(err)
	return answered(func() (*verify.Report, error) { return v.Fronts().Run(h.t.Context(), "") })
}

// still waits until everything is proven, or until verify says the same for a while.
func (h *pairCluster) still() (rep *verify.Report, err error) {
	h.t.Helper()
	same, last := time.Now(), ""
	eventually(h.t, 2*time.Minute, func() error {
		rep, err = h.proofFronts()
		waiting := err != nil || rep.Pending > 0
		text := fmt.Sprint(err)
		if err == nil {
			text = fmt.Sprintf("%+v %q", rep.Totals, rep.Problems)
			for i := range rep.Topics {
				if f := rep.Topics[i].Front; f != nil {
					waiting = waiting || f.Waiting > 0
					text += fmt.Sprintf("%+v", *f)
				}
			}
			if rep.OK() && !waiting {
				return nil
			}
		}
		if text != last {
			same, last = time.Now(), text
		}
		pause := 6 * time.Second
		if waiting {
			pause = 16 * time.Second
		}
		if time.Since(same) > pause {
			return nil
		}
		return fmt.Errorf("not settled yet: %.500s", text)
	})
	return rep, err
}

// heal carries out one repair. What fails is for the next one.
func (h *pairCluster) heal() (todo int) {
	h.t.Helper()
	plan := h.plan()
	if plan.Todo() == 0 {
		return 0
	}
	if err := h.repairer().Apply(h.t.Context(), plan, func(a *repair.Action, err error) {
		if err != nil {
			h.logf("%s %s: %v", a.Do, a.Where, err)
		}
	}); err != nil {
		h.logf("repair: %v", err)
	}
	return plan.Todo()
}

// healed repairs until verify proves everything or a repair finds nothing to do.
func (h *pairCluster) healed(fault func(string, ...any)) (rep *verify.Report, repaired bool) {
	h.t.Helper()
	var err error
	for range 5 {
		if rep, err = h.still(); err == nil && rep.OK() {
			return rep, repaired
		}
		if err == nil {
			h.logf("verify: %+v %s", rep.Totals, strings.Join(rep.Problems, "\n"))
		}
		if h.heal() == 0 {
			break
		}
		repaired = true
	}
	if err != nil {
		fault("verify: %v", err)
		rep = &verify.Report{}
	}
	return rep, repaired
}

// compareEvents holds the table against what could be read, and counts what is lost.
func (h *pairCluster) compareEvents(rep *verify.Report, fault func(string, ...any)) (lost int) {
	h.t.Helper()
	stored := h.inTable()
	var missing []string
	for _, m := range sortedKeys(h.events) {
		when := h.events[m]
		readable := when == afterDamage || when != "" && h.cell.has(when == sinceCopy, "EVENTS", "SHARDS", storeClickHouse)
		if h.cell.state(storeSpool) == putOlder && strings.HasPrefix(m, "a-") {
			readable = true // it was sent again
		}
		switch n := stored[m]; {
		case n > 1:
			fault("event %s is stored %d times", m, n)
		case n == 0 && readable:
			missing = append(missing, m+" of "+when)
		case n == 0 && when != "":
			lost++
		}
	}
	if len(missing) > 0 {
		fault("%d events could be read and are not stored: %s", len(missing), strings.Join(missing, ", "))
	}
	switch n := stored["old"]; {
	case n > 1:
		fault("what retention took is stored %d times", n)
	case n > 0 && h.cell.state(storeRegistry) == "" && rep.OK():
		fault("what retention took is stored again, and verify names nothing")
	}
	return lost
}

// compareCounts holds what verify counts as lost against what is lost.
//
// Events of "app" are decidable as long as one store knows how many there were: SHARDS and its
// checkpoints, the registry, which has copies of those, or EVENTS. Where all of them went back,
// what came since the copy is known to no one, and verify proves what is left: what is lost is
// counted by the test alone. Rows of documents and timers are not compared by count: repair adds
// versions of its own, so that the lost ones are not a difference of two numbers. They are
// compared by name, one by one.
func (h *pairCluster) compareCounts(rep *verify.Report, lost, named int, fault func(string, ...any)) {
	h.t.Helper()
	known := h.cell.has(true, "EVENTS", "SHARDS", storeRegistry)
	missing := 0
	for i := range rep.Topics {
		if rep.Topics[i].Topic == "app" {
			missing = int(rep.Topics[i].Missing)
		}
	}
	switch {
	case known && missing != lost:
		fault("verify counts %d events as missing, %d are lost", missing, lost)
	case missing > lost:
		fault("verify counts %d events as missing, %d are lost, and no store knows of any", missing, lost)
	case !rep.OK() && lost+named == 0:
		fault("nothing is lost, and verify names: %s", strings.Join(rep.Problems, "; "))
	}
}

// names reports whether verify names a thing.
func names(rep *verify.Report, what string) bool {
	return !rep.OK() && slices.ContainsFunc(rep.Problems, func(p string) bool { return strings.Contains(p, fmt.Sprintf("%q", what)) })
}

// compareDocuments says how many of them are not what was acknowledged, and named.
func (h *pairCluster) compareDocuments(rep *verify.Report, fault func(string, ...any)) (named int) {
	h.t.Helper()
	c, err := h.collection()
	if err != nil {
		fault("documents: %v", err)
		return 0
	}
	for _, id := range sortedKeys(h.docs) {
		if strings.HasPrefix(id, "of-") {
			continue
		}
		want, acked := -1, false
		for _, s := range h.docs[id] {
			if s.when == afterDamage || h.cell.has(s.when == sinceCopy, "DOCS", "SHARDS", storeClickHouse) {
				want, acked = s.n, true
			}
		}
		got, err := bodyOf(c.Load(h.t.Context(), id))
		switch {
		case err == nil && (got == want || !acked):
		case names(rep, id):
			named++
		default:
			fault("document %s has %d (%v), acknowledged was %v, expected %d", id, got, err, h.docs[id], want)
		}
	}
	return named
}

func (h *pairCluster) compareTimers(rep *verify.Report, fault func(string, ...any)) (named int) {
	h.t.Helper()
	stores := []string{"TIMERS", "SHARDS", storeClickHouse}
	for _, id := range sortedKeys(h.over) {
		if !h.cell.has(h.over[id] == sinceCopy, stores...) {
			continue
		}
		tm, err := h.timed.Get(h.t.Context(), "g", id)
		switch {
		case err != nil || tm.State.Over():
		case names(rep, id):
			named++
		default:
			fault("timer %s was over and is %s", id, tm.State)
		}
		h.timed.mu.Lock()
		if n := len(h.timed.calls[id]); n > h.called[id] {
			fault("timer %s was over and is called again", id)
		}
		h.timed.mu.Unlock()
	}
	for _, id := range sortedKeys(h.pending) {
		if when := h.pending[id]; strings.HasPrefix(id, "of-") || when != afterDamage && !h.cell.has(when == sinceCopy, stores...) {
			continue
		}
		switch tm, err := h.timed.Get(h.t.Context(), "g", id); {
		case err == nil && tm.State == timer.StatePending:
		case names(rep, id):
			named++
		default:
			fault("timer %s was pending and is %s (%v)", id, tm.State, err)
		}
	}
	return named
}
