package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// timersFound is what TIMERS has of a topic.
type timersFound struct {
	last map[string]*timer.Record // by subject
	// at are the sequences of the last messages, records or not, and replaced those of messages that are not records and took
	// the place of what was there.
	at, replaced map[string]uint64
	// young were stored under sequences that were routed before: no router reads them.
	young map[uint64]bool
}

// findTimers reads the records of a topic's timers, or of every topic's. TIMERS was routed up to ends.
func (r *Repairer) findTimers(ctx context.Context, topic string, ends routedEnds) (*timersFound, error) {
	f := &timersFound{last: map[string]*timer.Record{}, at: map[string]uint64{}, replaced: map[string]uint64{}, young: map[uint64]bool{}}
	_, err := streams.Headers(ctx, r.js, schemas.StreamTimers, schemas.TimerTopicFilter(topic), 1, func(m *streams.Message) error {
		if f.at[m.Subject] = m.Sequence; !schemas.IsEvent(m.Header, m.Size) {
			return nil
		}
		if ends.young(m.Sequence, m.Time.UnixNano()) {
			f.young[m.Sequence] = true
		}
		if rec, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil); err == nil {
			f.last[m.Subject] = &rec
			delete(f.replaced, m.Subject)
		} else if schemas.Replaces(m.Header) {
			delete(f.last, m.Subject)
			f.replaced[m.Subject] = m.Sequence
		}
		return nil
	})
	return f, err
}

// needs reports whether a timer's last record, or the one with its spec, has a sequence that was routed before.
func (f *timersFound) needs(r *timer.Record) bool { return f.young[r.Seq] || f.young[r.SpecAt()] }

// again are the timers that need sequences of their own.
func (f *timersFound) again() (out []lostTimer) {
	for subject, r := range f.last {
		if f.needs(r) {
			out = append(out, lostTimer{key: r.Key, expect: f.at[subject]})
		}
	}
	return out
}

// taken are the young messages, the oldest first.
func (f *timersFound) taken() []uint64 {
	seqs := make([]uint64, 0, len(f.young))
	for seq := range f.young {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	return seqs
}

// putAgain gives timers records whose sequences were not given before, and takes out the messages that took those:
// of every topic, since the mark goes then. It looks for them now: TIMERS ends above what was routed, so no process
// writes below any more, whatever it wrote since the plan.
func (r *Repairer) putAgain(ctx context.Context, a *Action) error {
	w, err := r.restoring(ctx, a)
	if err != nil {
		return err
	}
	marks, err := r.marks(ctx, a.Where)
	if err != nil {
		return err
	}
	ends := append(marks, a.ends...)
	if err := w.Mark(ctx, schemas.FrontBlankSubject(a.Where, a.Topic), ends.names()); err != nil {
		return err
	}
	r.crash("front marked")
	found, err := r.findTimers(ctx, schemas.AnyTopic, ends)
	if err != nil {
		return err
	}
	again := found.again()
	if err := r.noneErasing(ctx, again); err != nil {
		return err
	}
	byName(again)
	for i := range again {
		l := &again[i]
		was, err := r.timerAt(ctx, w, l)
		if err != nil {
			return err
		}
		if was == nil {
			continue
		}
		now, err := w.Now(ctx)
		if err != nil {
			return err
		}
		rec, err := frontRecord(timer.Rewrite(was, now), l.expect)
		if err == nil {
			_, err = w.Put(ctx, rec)
		}
		if err != nil {
			return fmt.Errorf("timer %q of group %q: %w; run repair again", l.key.ID, l.key.Group, err)
		}
		r.crash("timer put again")
	}
	s, err := streams.Open(ctx, r.js, schemas.StreamTimers)
	if err != nil {
		return err
	}
	for _, seq := range found.taken() {
		if err := streams.Delete(ctx, r.js, s, seq, false); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
	}
	r.crash("young timers gone")
	return streams.Purge(ctx, r.js, a.Where, schemas.FrontBlankSubject(a.Where, schemas.AnyTopic))
}

// noneErasing refuses timers of topics with an erasure under way: what it means would be put above its fence.
func (r *Repairer) noneErasing(ctx context.Context, timers []lostTimer) error {
	asked := map[string]bool{}
	for i := range timers {
		topic := timers[i].key.Topic
		if asked[topic] {
			continue
		}
		asked[topic] = true
		if id, err := r.erasing(ctx, topic); err != nil {
			return err
		} else if id != "" {
			return fmt.Errorf("the erasure %q of topic %q is under way; run repair again when it is finished", id, topic)
		}
	}
	return nil
}

// timerAt reads the last record of a timer with its spec; nil: what it calls is gone.
func (r *Repairer) timerAt(ctx context.Context, w *fronts.Writer, l *lostTimer) (*timer.Record, error) {
	was, _, err := fronts.Newest(ctx, w, l.key.Subject(), func(m *streams.Message) (*timer.Record, error) {
		was, err := timer.Parse(m.Subject, m.Sequence, m.Header, m.Data)
		return &was, err
	})
	if err != nil || was == nil || was.Spec != nil {
		return was, err
	}
	msg, err := streams.DecideAt(ctx, r.js, schemas.StreamTimers, was.SpecAt())
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && msg.Subject != l.key.Subject() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	from, err := timer.Parse(msg.Subject, msg.Sequence, msg.Header, msg.Data)
	was.Spec = from.Spec
	return was, err
}
