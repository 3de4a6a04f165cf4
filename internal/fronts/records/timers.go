package records

import (
	"fmt"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
)

// Timers: a timer leaves whole once it is over, because its records name its spec by sequence. What follows
// a record that ended a timer holds its own spec (timer.Create, timer.Again), so that nothing names
// a record at or below the last one that is purged.
var Timers = &Kind{
	Front: schemas.StreamTimers,
	Noun:  "timer",
	Name: func(subject string) string {
		_, _, group, _, id, _ := schemas.TimerTokens(subject)
		return fmt.Sprintf("timer %q of group %q", id, group)
	},
	Parse: func(m *streams.Message) (*Record, error) {
		if !schemas.IsEvent(m.Header, m.Size) {
			return nil, fmt.Errorf("%w: message %d of %s is not an event", schemas.ErrRecord, m.Sequence, schemas.StreamTimers)
		}
		r, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil)
		if err != nil {
			return nil, err
		}
		return &Record{Seq: r.Seq, Row: r.Seq, Changed: r.Changed, User: r.User, Size: m.Size, Over: r.State().Over(), Needs: r.SpecAt(), Unit: r.Life.String(), of: &r}, nil
	},
	Event: func(_ *schemas.Topic, m *streams.Message) (schemas.Event, error) {
		r, err := timer.Parse(m.Subject, m.Sequence, m.Header, m.Data)
		if err != nil {
			return schemas.Event{}, err
		}
		return r.RowEvent()
	},
	Whose: func(_ *schemas.Topic, subject string) bool {
		_, err := schemas.ParseTimerSubject(subject)
		return err == nil
	},
	Newest: newestTimers,
	Meant:  meantTimers,
	Compare: func(s *TopicState, l *Last, row *Row) string {
		return compareTimer(s, l.Timer(), timerRow(row))
	},
	Clear:    clearTimer,
	Fate:     func(r *Record, row *Row) Fate { return timerFate(r.Timer(), timerRow(row)) },
	Restored: "timers", RestoredWhat: "timers that are pending by their history",
	Restore: restoreTimers,
	Again:   putTimerAgain,
	Says: func(r *Record) string {
		t, size := r.Timer(), r.Size
		if t.SpecSeq != 0 {
			size = 0
		}
		return t.Key.Group + " " + t.Key.ID + " " + t.Life.String() + " " + strconv.FormatInt(t.Revision, 10) + " " +
			strconv.FormatInt(t.Attempt, 10) + " " + string(t.Op) + " " + strconv.Itoa(size)
	},
	Column: fmt.Sprintf("concat(`%s`, ' ', %s, ' ', toString(%s), ' ', toString(%s), ' ', toString(%s), ' ', %s, ' ', toString(length(%s)))",
		kinds.ColGroup, kinds.ColTimerID, kinds.ColLife, kinds.ColRevision, kinds.ColAttempt, kinds.ColState, kinds.ColSpec),
	HotFor: func(*schemas.Topic) time.Duration { return 0 },
}

// Timer is the timer of a record of Timers; nil without one.
func (r *Record) Timer() *timer.Record {
	if r == nil {
		return nil
	}
	return r.of.(*timer.Record)
}

func timerIDs(subjects []string) []string {
	if subjects == nil {
		return nil
	}
	ids := make([]string, len(subjects))
	for i, subject := range subjects {
		_, _, _, _, ids[i], _ = schemas.TimerTokens(subject)
	}
	return ids
}

// compareTimer: retention may have taken rows that are older than the topic keeps.
func compareTimer(s *TopicState, r *timer.Record, n *transition) string {
	const front = schemas.StreamTimers
	switch {
	case r == nil && (n == nil || n.Op.State().Over()):
		return Equal
	case r == nil:
		return fmt.Sprintf("%s does not have it, ClickHouse says that it is %s since record %d; run `almanac repair`", front, n.Op.State(), n.Seq)
	case n != nil && n.Seq > r.Seq && n.Op.State().Over() && !r.State().Over():
		return fmt.Sprintf("it is %s in %s, record %d, and ended in ClickHouse: %s, record %d; run `almanac repair`", r.State(), front, r.Seq, n.Op, n.Seq)
	case n != nil && n.Seq > r.Seq:
		return fmt.Sprintf("%s has record %d of it, ClickHouse has a later one, %d; run `almanac repair`", front, r.Seq, n.Seq)
	case n != nil && n.Seq == r.Seq:
		return compareTimerRow(s, r, n)
	case r.Seq > s.UpTo[r.Key.Lane]:
		return Waiting
	case pastKeep(s, r.Changed):
		return Equal
	}
	return fmt.Sprintf("record %d of %s (%s) is not in ClickHouse, though its lane is stored up to %d: it is among the dead letters, or lost", r.Seq, front, r.Op, s.UpTo[r.Key.Lane])
}

// compareTimerRow compares a record with its row.
func compareTimerRow(s *TopicState, r *timer.Record, n *transition) string {
	switch {
	case n.Op != r.Op || n.Life != r.Life.String() || n.Revision != r.Revision || n.Attempt != r.Attempt || n.Due != r.Due || n.Changed != r.Changed:
		return fmt.Sprintf("record %d is another one in ClickHouse than in %s", r.Seq, schemas.StreamTimers)
	case r.State().Over() || n.Begun || pastKeep(s, r.CreatedAt):
		return Equal
	}
	return fmt.Sprintf("it is %s, and ClickHouse does not have its creation", r.State())
}

// pastKeep reports whether retention may have taken what happened at a time, unix ns.
func pastKeep(s *TopicState, ns int64) bool {
	return s.Topic.KeepDays > 0 && s.Topic.PastKeep(schemas.MonthOf(ns), s.Now)
}
