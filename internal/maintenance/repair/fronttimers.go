package repair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// lostTimer is a timer whose last record in TIMERS is not what it should be.
type lostTimer struct {
	key       schemas.TimerKey
	newest    tables.NewestTimer // by its history; not set of what is put again
	expect    uint64             // the sequence of the last message that TIMERS has of it; 0: nothing
	misplaced bool               // that message is not a record, and goes
}

// timersPlan is what TIMERS needs of a topic.
type timersPlan struct {
	topic   *schemas.Topic
	ends    routedEnds
	advance *Action // nil: TIMERS ends above what was routed
	again   *Action // nil: no record took a sequence that was routed before
	// By their history: lost are pending and not in TIMERS, ended are pending there and over, and what gone call is nowhere.
	lost, ended, gone []lostTimer
	misplaced         map[string]uint64 // by subject
}

// addTo adds the actions in their order. While TIMERS ends below what was routed no dispatcher calls anything, so what ended
// goes before it goes on: it could be called again.
func (tp *timersPlan) addTo(p *Plan) {
	add := func(do Do, ls []lostTimer, source, what string) {
		if len(ls) > 0 {
			byName(ls)
			p.add(Action{Do: do, Topic: tp.topic.Name, Where: schemas.StreamTimers, Rows: uint64(len(ls)), Source: source, topic: tp.topic, timers: ls, front: tp.ends.max().Seq,
				Detail: fmt.Sprintf("%s, of which %q of group %q is the first", what, ls[0].key.ID, ls[0].key.Group)})
		}
	}
	add(DropEnded, tp.ended, "ClickHouse", "timers that ended by their history")
	for _, a := range []*Action{tp.advance, tp.again} {
		if a != nil {
			p.add(*a)
		}
	}
	add(RestoreTimers, tp.lost, "ClickHouse", "timers that are pending by their history")
	p.dropReplacing(tp.topic, schemas.StreamTimers, tp.misplaced)
	add(Lost, tp.gone, "", "timers that are pending by their history, and what they call is nowhere")
}

// planTimers compares what TIMERS has of a topic with its history. marked: TIMERS has or will have a mark.
func (r *Repairer) planTimers(ctx context.Context, t *schemas.Topic, ends routedEnds, upTo map[int]uint64, marked bool) (*timersPlan, error) {
	found, err := r.findTimers(ctx, t.Name, ends)
	if err != nil {
		return nil, err
	}
	plan := &timersPlan{topic: t, ends: ends, misplaced: map[string]uint64{}}
	take := func(n tables.NewestTimer) error {
		l := lostTimer{key: n.Key(t), newest: n}
		subject := l.key.Subject()
		rec := found.last[subject]
		l.expect = found.at[subject]
		if rec != nil && found.needs(rec) {
			return nil // newer than its history
		}
		if seq, stray := found.replaced[subject]; stray {
			if seq > upTo[l.key.Lane] { // no dead letter says yet what was replaced
				return nil
			}
			l.misplaced = true
		}
		switch timerFate(rec, &n) {
		case restoreTimer:
			plan.lost = append(plan.lost, l)
			delete(found.replaced, subject)
		case dropTimer:
			plan.ended = append(plan.ended, l)
		case loseTimer:
			plan.gone = append(plan.gone, l)
		}
		return nil
	}
	for lane := range t.Lanes {
		if err := r.db.NewestTimers(ctx, t.Name, lane, nil, take); err != nil && !errors.Is(err, tables.ErrNoTable) {
			return nil, err
		}
	}
	if marked || len(found.young) > 0 {
		plan.again = &Action{Do: PutAgain, Topic: t.Name, Where: schemas.StreamTimers, Rows: uint64(len(found.again())), Source: schemas.StreamTimers, topic: t, front: ends.max().Seq, ends: ends,
			Detail: fmt.Sprintf("%d records so far took sequences that were routed before", len(found.young))}
	}
	for subject, seq := range found.replaced {
		if key, err := schemas.ParseTimerSubject(subject); err == nil && seq <= upTo[key.Lane] {
			plan.misplaced[subject] = found.at[subject]
		}
	}
	return plan, nil
}

func byName(ls []lostTimer) {
	slices.SortFunc(ls, func(a, b lostTimer) int {
		return strings.Compare(a.key.Group+" "+a.key.ID, b.key.Group+" "+b.key.ID)
	})
}

// What timerFate says.
const (
	keepTimer    = iota
	restoreTimer // it is pending again
	dropTimer    // it goes
	loseTimer    // it cannot come back
)

// timerFate decides what becomes of a timer of which TIMERS has r, nil for nothing, and whose newest stored
// transition is n.
func timerFate(r *timer.Record, n *tables.NewestTimer) int {
	switch {
	case r != nil && r.Seq >= n.Seq:
		return keepTimer
	case n.Op.State().Over() && r == nil: // it left
		return keepTimer
	case n.Op.State().Over():
		return dropTimer
	case !n.Spec:
		return loseTimer
	}
	return restoreTimer
}

// restoreTimers makes timers pending again as their history has them, each where TIMERS still has what it had.
func (r *Repairer) restoreTimers(ctx context.Context, a *Action) error {
	for some := range slices.Chunk(a.timers, fronts.MaxBatch) {
		w, err := r.restoring(ctx, a) // each time: an erasure may have begun
		if err != nil {
			return err
		}
		lives := make([]string, len(some))
		for i := range some {
			lives[i] = some[i].newest.Life
		}
		stored, err := r.db.TimerLives(ctx, a.Topic, lives)
		if err != nil {
			return err
		}
		var records []fronts.Record
		for i := range some {
			was, err := timerOf(&some[i], stored)
			if err != nil {
				return err
			}
			if was == nil { // retention or an erasure took it meanwhile
				continue
			}
			now, err := w.Now(ctx)
			if err != nil {
				return err
			}
			rec, err := frontRecord(timer.Restore(was, now), some[i].expect)
			if err != nil {
				return err
			}
			records = append(records, rec)
		}
		if err := putBack(ctx, w, records); err != nil {
			return err
		}
		if err := r.dropBelow(ctx, some); err != nil {
			return err
		}
		r.crash("timers restored")
	}
	return nil
}

// dropBelow takes out what is not a record below timers that were restored.
func (r *Repairer) dropBelow(ctx context.Context, timers []lostTimer) error {
	s, err := streams.Open(ctx, r.js, schemas.StreamTimers)
	if err != nil {
		return err
	}
	for i := range timers {
		if !timers[i].misplaced {
			continue
		}
		if err := streams.Delete(ctx, r.js, s, timers[i].expect, false); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
	}
	return nil
}

// timerOf is a timer's record by its history; nil: its spec is not stored.
func timerOf(l *lostTimer, stored map[string]tables.TimerLife) (*timer.Record, error) {
	n := &l.newest
	life, ok := stored[n.Life]
	if !ok || life.Spec == "" {
		return nil, nil
	}
	was := &timer.Record{
		Key: l.key, Op: n.Op, Seq: n.Seq, Changed: n.Changed, CreatedAt: life.CreatedAt, Revision: n.Revision, Attempt: n.Attempt, Due: n.Due,
		Spec: &timer.Spec{}, User: life.User,
	}
	if life.Revision == n.Revision {
		was.First = life.First
	}
	if err := json.Unmarshal([]byte(life.Spec), was.Spec); err != nil {
		return nil, fmt.Errorf("timer %q of group %q: its spec in ClickHouse: %w", l.key.ID, l.key.Group, err)
	}
	was.Host = was.Spec.Host()
	var err error
	was.Life, err = schemas.ParseID(n.Life)
	return was, err
}

func frontRecord(next timer.Record, expect uint64) (fronts.Record, error) {
	h, data, err := next.Message()
	return fronts.Record{Subject: next.Key.Subject(), Header: h, Data: data, Expect: expect, For: fronts.End}, err
}

// dropEnded takes timers out of TIMERS that ended by their history, unless they went on meanwhile. It writes nothing, so
// TIMERS may still end below what was routed.
func (r *Repairer) dropEnded(ctx context.Context, a *Action) error {
	if err := r.noneErasing(ctx, a.timers); err != nil {
		return err
	}
	w, err := fronts.Open(ctx, r.js, a.Where, fronts.Config{})
	if err != nil {
		return err
	}
	s, err := streams.Open(ctx, r.js, schemas.StreamTimers)
	if err != nil {
		return err
	}
	for i := range a.timers {
		l := &a.timers[i]
		msg, err := w.Last(ctx, l.key.Subject())
		if errors.Is(err, fronts.ErrNotFound) || err == nil && msg.Sequence != l.expect {
			continue
		}
		if err != nil {
			return err
		}
		if err := streams.PurgeWith(ctx, s, l.key.Subject(), jetstream.WithPurgeSequence(l.expect+1)); err != nil {
			return err
		}
		r.crash("timer dropped")
	}
	return nil
}
