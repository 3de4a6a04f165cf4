package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// frontPlan is what a front needs of a topic.
type frontPlan struct {
	kind    *records.Kind
	topic   *schemas.Topic
	ends    routedEnds
	advance *Action // nil: the front ends above what was routed
	again   *Action // nil: no record took a sequence that was routed before
	// By their rows: lost are not in the front, or older there; ended are there and over; and what gone need is nowhere.
	lost, ended, gone []records.Lost
	misplaced         map[string]uint64 // by subject
	waits             int               // of which what took their place is not routed yet
}

// restoreOf and dropOf are the actions of a kind: RestoreStubs, RestoreTimers, DropEnded.
func restoreOf(k *records.Kind) Do { return Do("restore " + k.Restored) }
func dropOf(k *records.Kind) Do    { return Do("drop ended " + k.Noun + "s") }

// addTo adds the actions in their order. While TIMERS ends below what was routed no dispatcher calls anything, so what ended
// goes before it goes on: it could be called again.
func (fp *frontPlan) addTo(p *Plan) {
	add := func(do Do, ls []records.Lost, source, what string) {
		if len(ls) > 0 {
			slices.SortFunc(ls, func(a, b records.Lost) int { return strings.Compare(a.Subject, b.Subject) })
			p.add(Action{Do: do, Topic: fp.topic.Name, Where: fp.kind.Front, Rows: uint64(len(ls)), Source: source, topic: fp.topic, lost: ls, front: fp.ends.max().Seq,
				Detail: fmt.Sprintf("%s, of which %s is the first", what, fp.kind.Name(ls[0].Subject))})
		}
	}
	add(dropOf(fp.kind), fp.ended, "ClickHouse", fp.kind.Noun+"s that ended by their history")
	for _, a := range []*Action{fp.advance, fp.again} {
		if a != nil {
			p.add(*a)
		}
	}
	add(restoreOf(fp.kind), fp.lost, "ClickHouse", fp.kind.RestoredWhat)
	if fp.waits > 0 {
		p.note("%s: what took the place of %d %ss is not routed yet; run repair again once it is", fp.topic.Name, fp.waits, fp.kind.Noun)
	}
	p.dropReplacing(fp.topic, fp.kind.Front, fp.misplaced)
	add(Lost, fp.gone, "", fp.kind.Noun+"s that are pending by their history, and what they call is nowhere")
}

// planLost compares what a front has of a topic, which was routed up to ends and stored up to upTo, with the rows. marked:
// the front has or will have a mark.
func (r *Repairer) planLost(ctx context.Context, k *records.Kind, t *schemas.Topic, ends routedEnds, upTo map[int]uint64, marked bool) (*frontPlan, error) {
	young := youngRecords{}
	last, err := k.Walk(ctx, r.js, t.InFronts(), func(m *streams.Message) bool { return young.note(ends, m) && k.Whose(t, m.Subject) })
	if err != nil {
		return nil, err
	}
	if err := r.checkSuspects(ctx, k, last); err != nil {
		return nil, err
	}
	plan := &frontPlan{kind: k, topic: t, ends: ends, misplaced: map[string]uint64{}}
	waits := map[string]bool{}
	for subject, l := range last {
		token, _ := schemas.SourceLane(k.Front, subject)
		lane, err := schemas.ParseLane(token)
		switch {
		case err != nil || l.Record != nil || l.Replaced == 0:
		case l.At > upTo[lane]: // no dead letter says yet what was replaced
			waits[subject] = true
		default:
			plan.misplaced[subject] = l.At
		}
	}
	plan.waits = len(waits)
	take := func(row records.Row) error {
		l := last[row.Subject]
		if waits[row.Subject] || young.needs(l.Record) { // what is put again is newer than its rows
			return nil
		}
		lost := records.Lost{Row: row, Expect: l.At, Misplaced: plan.misplaced[row.Subject] > 0}
		switch k.Fate(l.Record, &row) {
		case records.Restore:
			plan.lost = append(plan.lost, lost)
			delete(plan.misplaced, row.Subject)
		case records.Drop:
			plan.ended = append(plan.ended, lost)
		case records.Lose:
			plan.gone = append(plan.gone, lost)
		}
		return nil
	}
	for lane := range t.Lanes {
		if err := k.Newest(ctx, r.db, t, lane, nil, take); err != nil {
			return nil, err
		}
	}
	if plan.lost, err = r.notExpired(ctx, t.Name, plan.lost); err != nil {
		return nil, err
	}
	if marked || len(young) > 0 {
		plan.again = &Action{Do: PutAgain, Topic: t.Name, Where: k.Front, Rows: uint64(len(young.again(last))), Source: k.Front, topic: t, front: ends.max().Seq, ends: ends,
			Detail: fmt.Sprintf("%d records so far took sequences that were routed before", len(young))}
	}
	return plan, nil
}
