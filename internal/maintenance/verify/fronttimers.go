package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/fronts/archived"
	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// frontTimers compares the timers in TIMERS with their history: what each of them is now.
func (v *Verifier) frontTimers(ctx context.Context, t *schemas.Topic, rep *TopicReport) error {
	upTo, err := archived.UpTo(ctx, v.js, v.reg, v.db, t)
	if err != nil {
		return err
	}
	last, err := records.LastTimers(ctx, v.js, t.Name)
	if err != nil {
		return err
	}
	rep.Front = &FrontReport{Timers: true}
	now := time.Now()
	var doubt []schemas.TimerKey
	note := func(key schemas.TimerKey, r *timer.Record, n *tables.NewestTimer) {
		rep.Front.countTimer(r)
		switch compareTimer(t, r, n, upTo, now) {
		case frontEqual:
		case frontWaiting:
			rep.Front.Waiting++
		default:
			doubt = append(doubt, key)
		}
	}
	for lane := range t.Lanes {
		err = v.db.NewestTimers(ctx, t.Name, lane, nil, func(n tables.NewestTimer) error {
			key := n.Key(t)
			subject := key.Subject()
			note(key, last[subject], &n)
			delete(last, subject)
			return nil
		})
		if err != nil && !errors.Is(err, tables.ErrNoTable) {
			return err
		}
	}
	for _, r := range last {
		note(r.Key, r, nil)
	}
	return v.timersAgain(ctx, t, rep, doubt)
}

// timersAgain looks again at timers that differed.
func (v *Verifier) timersAgain(ctx context.Context, t *schemas.Topic, rep *TopicReport, doubt []schemas.TimerKey) error {
	keys, subjects := make(map[string]schemas.TimerKey, len(doubt)), make([]string, len(doubt))
	for i, key := range doubt {
		subjects[i] = key.Subject()
		keys[subjects[i]] = key
	}
	return v.lookAgain(ctx, t, rep, subjects, &again{
		what: "timer",
		name: func(subject string) string {
			return fmt.Sprintf("timer %q of group %q", keys[subject].ID, keys[subject].Group)
		},
		compare: func(ctx context.Context, subjects []string) (map[string]string, error) {
			return v.wrongTimers(ctx, t, rep, subjects, keys)
		},
		meant: func(ctx context.Context, e *ledger.Erasure, subjects []string) ([]string, error) {
			return v.meantTimers(ctx, t, e, subjects, keys)
		},
	})
}

// wrongTimers compares timers once more: they may have changed meanwhile. What was stored since counts too, so all
// is read again, the front first.
func (v *Verifier) wrongTimers(ctx context.Context, t *schemas.Topic, rep *TopicReport, subjects []string, keys map[string]schemas.TimerKey) (map[string]string, error) {
	upTo, err := archived.UpTo(ctx, v.js, v.reg, v.db, t)
	if err != nil {
		return nil, err
	}
	last, err := records.LastOfTimers(ctx, v.js, subjects)
	if err != nil {
		return nil, err
	}
	newest := map[string]*tables.NewestTimer{}
	for lane, some := range byLane(subjects, func(subject string) int { return keys[subject].Lane }) {
		err = v.db.NewestTimers(ctx, t.Name, lane, timerIDs(some, keys), func(n tables.NewestTimer) error {
			newest[n.Key(t).Subject()] = &n
			return nil
		})
		if err != nil && !errors.Is(err, tables.ErrNoTable) {
			return nil, err
		}
	}
	ended, err := v.ended(ctx, t)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return rep.differ(subjects, func(subject string) string {
		r, n := last[subject], newest[subject]
		why := compareTimer(t, r, n, upTo, now)
		if why != frontEqual && why != frontWaiting && r != nil && (n == nil || n.Seq < r.Seq) {
			why += mayBeOf(ended, r.Seq, r.Changed, r.User, false)
		}
		return why
	}), nil
}

// meantTimers lists those of some timers that an erasure means, by their rows. Groups have timers of the same id.
func (v *Verifier) meantTimers(ctx context.Context, t *schemas.Topic, e *ledger.Erasure, subjects []string, keys map[string]schemas.TimerKey) (out []string, err error) {
	cond, params := e.Match("e")
	for lane, some := range byLane(subjects, func(subject string) int { return keys[subject].Lane }) {
		c := tables.AmongTimers(tables.Condition{SQL: cond, Params: params}, timerIDs(some, keys))
		for after := (tables.MeantTimer{}); ; {
			meant, err := v.db.MeantTimers(ctx, e.Topic, lane, c, after, maxDiffer)
			if errors.Is(err, tables.ErrNoTable) {
				break
			}
			if err != nil {
				return nil, err
			}
			for _, m := range meant {
				out = append(out, m.Key(t).Subject())
			}
			if len(meant) < maxDiffer {
				break
			}
			after = meant[len(meant)-1]
		}
	}
	return out, nil
}

func timerIDs(subjects []string, keys map[string]schemas.TimerKey) []string {
	ids := make([]string, len(subjects))
	for i, subject := range subjects {
		ids[i] = keys[subject].ID
	}
	return ids
}

// countTimer counts a timer by its last record in TIMERS; nil: it is over and left.
func (f *FrontReport) countTimer(r *timer.Record) {
	if r == nil {
		f.Cold++
	} else {
		f.Hot++
	}
}

// compareTimer compares a timer's last record in TIMERS with its newest stored transition; nil: there is none. upTo
// is how far each lane is stored. Retention may have taken rows that are older than the topic keeps.
func compareTimer(t *schemas.Topic, r *timer.Record, n *tables.NewestTimer, upTo map[int]uint64, now time.Time) string {
	const front = schemas.StreamTimers
	switch {
	case r == nil && (n == nil || n.Op.State().Over()):
		return frontEqual
	case r == nil:
		return fmt.Sprintf("%s does not have it, ClickHouse says that it is %s since record %d; run `almanac repair`", front, n.Op.State(), n.Seq)
	case n != nil && n.Seq > r.Seq && n.Op.State().Over() && !r.State().Over():
		return fmt.Sprintf("it is %s in %s, record %d, and ended in ClickHouse: %s, record %d; run `almanac repair`", r.State(), front, r.Seq, n.Op, n.Seq)
	case n != nil && n.Seq > r.Seq:
		return fmt.Sprintf("%s has record %d of it, ClickHouse has a later one, %d; run `almanac repair`", front, r.Seq, n.Seq)
	case n != nil && n.Seq == r.Seq:
		return compareTimerRow(t, r, n, now)
	case r.Seq > upTo[r.Key.Lane]:
		return frontWaiting
	case pastKeep(t, r.Changed, now):
		return frontEqual
	}
	return fmt.Sprintf("record %d of %s (%s) is not in ClickHouse, though its lane is stored up to %d: it is among the dead letters, or lost", r.Seq, front, r.Op, upTo[r.Key.Lane])
}

// compareTimerRow compares a record with its row.
func compareTimerRow(t *schemas.Topic, r *timer.Record, n *tables.NewestTimer, now time.Time) string {
	switch {
	case n.Op != r.Op || n.Life != r.Life.String() || n.Revision != r.Revision || n.Attempt != r.Attempt || n.Due != r.Due || n.Changed != r.Changed:
		return fmt.Sprintf("record %d is another one in ClickHouse than in %s", r.Seq, schemas.StreamTimers)
	case r.State().Over() || n.Begun || pastKeep(t, r.CreatedAt, now):
		return frontEqual
	}
	return fmt.Sprintf("it is %s, and ClickHouse does not have its creation", r.State())
}

// pastKeep reports whether retention may have taken what happened at a time, unix ns.
func pastKeep(t *schemas.Topic, ns int64, now time.Time) bool {
	return t.KeepDays > 0 && t.PastKeep(schemas.MonthOf(ns), now)
}
