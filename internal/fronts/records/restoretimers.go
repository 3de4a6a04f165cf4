package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// timerFate decides what becomes of a timer of which TIMERS has r, nil for nothing, and whose newest stored
// transition is n.
func timerFate(r *timer.Record, n *transition) Fate {
	switch {
	case r != nil && r.Seq >= n.Seq:
		return Keep
	case n.Op.State().Over() && r == nil: // it left
		return Keep
	case n.Op.State().Over():
		return Drop
	case !n.Spec:
		return Lose
	}
	return Restore
}

// restoreTimers makes timers pending again as their history has them.
func restoreTimers(ctx context.Context, db *tables.DB, t *schemas.Topic, lost []Lost, now func() (int64, error)) ([]fronts.Record, error) {
	lives, lanes := make([]string, len(lost)), make([]int, len(lost))
	for i := range lost {
		n := timerRow(&lost[i].Row)
		lives[i], lanes[i] = n.Life, n.Key(t).Lane
	}
	stored, err := timerLives(ctx, db, t.Name, lanes, lives)
	if err != nil {
		return nil, err
	}
	var out []fronts.Record
	for i := range lost {
		was, err := timerOf(t, timerRow(&lost[i].Row), stored)
		if err != nil {
			return nil, err
		}
		if was == nil { // retention or an erasure took it meanwhile
			continue
		}
		at, err := now()
		if err != nil {
			return nil, err
		}
		next := timer.Restore(was, at)
		rec, err := timerRecord(&next, lost[i].Expect)
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}

// timerOf is a timer's record by its history; nil: its spec is not stored.
func timerOf(t *schemas.Topic, n *transition, stored map[string]timerLife) (*timer.Record, error) {
	life, ok := stored[n.Life]
	if !ok || life.Spec == "" {
		return nil, nil
	}
	was := &timer.Record{
		Key: n.Key(t), Op: n.Op, Seq: n.Seq, Changed: n.Changed, CreatedAt: life.CreatedAt, Revision: n.Revision, Attempt: n.Attempt, Due: n.Due,
		Spec: &timer.Spec{}, User: life.User,
	}
	if life.Revision == n.Revision {
		was.First = life.First
	}
	if err := json.Unmarshal([]byte(life.Spec), was.Spec); err != nil {
		return nil, fmt.Errorf("timer %q of group %q: its spec in ClickHouse: %w", n.ID, n.Group, err)
	}
	was.Host = was.Spec.Host()
	var err error
	was.Life, err = schemas.ParseID(n.Life)
	return was, err
}

// putTimerAgain puts a timer's last record again with its spec; nil: what it calls is gone.
func putTimerAgain(_ context.Context, _ *tables.DB, _ *schemas.Topic, last *streams.Message, at func(seq uint64) (*streams.Message, error), now func() (int64, error)) (*fronts.Record, error) {
	was, err := timer.Parse(last.Subject, last.Sequence, last.Header, last.Data)
	if err != nil {
		return nil, err
	}
	if was.Spec == nil {
		msg, err := at(was.SpecAt())
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && msg.Subject != last.Subject {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		from, err := timer.Parse(msg.Subject, msg.Sequence, msg.Header, msg.Data)
		if err != nil {
			return nil, err
		}
		was.Spec = from.Spec
	}
	changed, err := now()
	if err != nil {
		return nil, err
	}
	next := timer.Rewrite(&was, changed)
	rec, err := timerRecord(&next, 0)
	return &rec, err
}
