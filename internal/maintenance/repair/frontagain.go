package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A front was restored from an older copy, or lost its end, and records were written before that was noticed: under
// sequences that were routed before, so that no router reads them. They are put again above. Of several such records of
// one key the last one stays.

// youngRecords are the sequences of those records.
type youngRecords map[uint64]bool

// note notes whether a message is one, and is always true.
func (y youngRecords) note(ends routedEnds, m *streams.Message) bool {
	if schemas.IsEvent(m.Header, m.Size) && ends.young(m.Sequence, m.Time.UnixNano()) {
		y[m.Sequence] = true
	}
	return true
}

// needs reports whether a key's last record, or what it stands on, has a sequence that was routed before.
func (y youngRecords) needs(r *records.Record) bool { return r != nil && (y[r.Seq] || y[r.Needs]) }

// again are the keys that need sequences of their own.
func (y youngRecords) again(last map[string]records.Last) (subjects []string) {
	for subject, l := range last {
		if y.needs(l.Record) {
			subjects = append(subjects, subject)
		}
	}
	slices.Sort(subjects)
	return subjects
}

// putAgain gives keys records whose sequences were not given before, and takes out the messages that took those:
// of every topic, since the marks go then. It looks for them now: the front ends above what was routed, so no process
// writes below any more, whatever it wrote since the plan.
func (r *Repairer) putAgain(ctx context.Context, a *Action) error {
	k := records.Of(a.topic)
	w, err := r.restoring(ctx, a)
	if err != nil {
		return err
	}
	marks, err := r.routedUpTo(ctx, a.Where)
	if err != nil {
		return err
	}
	ends := append(marks, a.ends...)
	if err := w.Mark(ctx, schemas.FrontBlankSubject(a.Where, a.topic.InFronts()), ends.names()); err != nil {
		return err
	}
	r.crash("front marked")
	young := youngRecords{}
	last, err := k.Walk(ctx, r.js, schemas.AnyTopic, func(m *streams.Message) bool { return young.note(ends, m) })
	if err != nil {
		return err
	}
	again := young.again(last)
	topics, err := r.topicsOf(ctx, again)
	if err != nil {
		return err
	}
	for _, subject := range again {
		t := topics[schemas.SourceTopic(subject)]
		if t == nil {
			continue
		}
		if err := r.putKeyAgain(ctx, k, t, w, subject, young); err != nil {
			return fmt.Errorf("%s: %w; run repair again", k.Name(subject), err)
		}
		r.crash("record put again")
	}
	s, err := streams.Open(ctx, r.js, a.Where)
	if err != nil {
		return err
	}
	for _, seq := range slices.Sorted(maps.Keys(young)) {
		if err := streams.Delete(ctx, r.js, s, seq, false, streams.Refuse); err != nil {
			return err
		}
	}
	r.crash("young records gone")
	return streams.Purge(ctx, r.js, a.Where, schemas.FrontBlankSubject(a.Where, schemas.AnyTopic), streams.Refuse)
}

// topicsOf are the topics of some keys, by their tokens; nil of one that was removed, of which nothing comes again. It refuses those with
// an erasure under way: what it means would be put above its fence.
func (r *Repairer) topicsOf(ctx context.Context, subjects []string) (map[string]*schemas.Topic, error) {
	topics := map[string]*schemas.Topic{}
	for _, subject := range subjects {
		token := schemas.SourceTopic(subject)
		if _, known := topics[token]; known {
			continue
		}
		name, first, err := schemas.ParseFrontTopic(token)
		if err != nil {
			return nil, err
		}
		if id, err := r.erasing(ctx, name); err != nil {
			return nil, err
		} else if id != "" {
			return nil, fmt.Errorf("the erasure %q of topic %q is under way; run repair again when it is finished", id, name)
		}
		t, err := r.reg.Topic(ctx, name)
		if err == nil && t.First == first {
			topics[token] = &t
			continue
		}
		if d, known := r.reg.Removal(ctx, name); known != nil || !d.Had(first) {
			return nil, fmt.Errorf("%s: %w", token, cmp.Or(err, known, schemas.ErrUnknownTopic))
		}
		topics[token] = nil
	}
	return topics, nil
}

// putKeyAgain puts a key's last record again, where that still needs it.
func (r *Repairer) putKeyAgain(ctx context.Context, k *records.Kind, t *schemas.Topic, w *fronts.Writer, subject string, young youngRecords) error {
	var was *records.Record
	msg, last, err := fronts.Newest(ctx, w, subject, func(m *streams.Message) (_ *streams.Message, err error) {
		was, err = k.Parse(m)
		return m, err
	})
	if errors.Is(err, fronts.ErrReplaced) || err == nil && (msg == nil || !young.needs(was)) {
		return nil // it went on above, or is not a record: a router keeps that as a dead letter
	}
	if err != nil {
		return err
	}
	next, err := k.Again(ctx, r.db, t, msg, func(seq uint64) (*streams.Message, error) { return streams.DecideAt(ctx, r.js, k.Front, seq) }, func() (int64, error) { return w.Now(ctx) })
	if err != nil || next == nil {
		return err
	}
	next.Expect = last
	_, err = w.Put(ctx, *next)
	return err
}
