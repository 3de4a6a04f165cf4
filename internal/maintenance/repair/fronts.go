package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/fronts/archived"
	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A front that lost records, or all of them, gets back from ClickHouse what each key is: of a document a stub of its newest
// version, and a timer pending again. First its sequences go on above those that were routed, since routers pass over what
// lies below.

// planFront adds what the front of a topic of documents or timers needs.
func (r *Repairer) planFront(ctx context.Context, t *schemas.Topic, p *Plan) error {
	front := t.Front()
	if id, err := r.erasing(ctx, t.Name); err != nil || id != "" {
		if err == nil {
			p.note("%s: the erasure %s is not finished, and nothing is restored in %s before it is: `almanac erase resume %s`", t.Name, id, front, id)
		}
		return err
	}
	routed, err := streams.Checkpoints(ctx, r.js, t.Name)
	if err != nil {
		return err
	}
	upTo, err := archived.UpTo(ctx, r.js, r.reg, r.db, t)
	if err != nil {
		return err
	}
	for token, cp := range routed {
		if lane, err := schemas.ParseLane(token); err == nil && cp.Front != "" && upTo[lane] < cp.Source {
			p.note("%s: lane %d is stored up to %d and was routed up to %d: nothing is restored in %s before the sinks have stored the rest", t.Name, lane, upTo[lane], cp.Source, front)
			return nil
		}
	}
	ends, last, err := r.routedEnds(ctx, front)
	if err != nil {
		return err
	}
	blanks, err := streams.Subjects(ctx, r.js, front, schemas.FrontBlankSubject(front, t.InFronts())) // of a repair that was killed
	if err != nil {
		return err
	}
	end := ends.max()
	advance := last < end.Seq
	onward := Action{Do: AdvanceFront, Topic: t.Name, Where: front, topic: t, front: end.Seq, ends: ends,
		Detail: fmt.Sprintf("it ends at message %d, and was routed up to %d", last, end.Seq)}
	fp, err := r.planLost(ctx, records.Of(t), t, ends, upTo, advance || len(blanks) > 0)
	if err != nil {
		return err
	}
	if advance {
		fp.advance = &onward
	}
	fp.addTo(p)
	return nil
}

// notExpired leaves out the documents whose newest version retention takes: it takes their records
// out of DOCS before their rows. The shards are read after both.
func (r *Repairer) notExpired(ctx context.Context, topic string, lost []records.Lost) ([]records.Lost, error) {
	if len(lost) == 0 {
		return nil, nil
	}
	shards, err := r.reg.Shards(ctx, topic, 0)
	if err != nil {
		return nil, err
	}
	gone := registry.DroppedOf(shards)
	return slices.DeleteFunc(slices.Clone(lost), func(l records.Lost) bool {
		return l.Place != nil && gone[schemas.ShardRef{Topic: topic, Month: l.Place.Month, ID: l.Place.Shard}]
	}), nil
}

// erasing is an erasure of the topic's front under way: it takes records out of the front
// before it takes their rows, which must not bring them back. "": there is none.
func (r *Repairer) erasing(ctx context.Context, topic string) (id string, err error) {
	erasures, err := r.reg.Ledger(ctx, topic)
	if err != nil {
		return "", err
	}
	for _, e := range erasures.Only(ledger.Waiting, ledger.Erasing) {
		if e.Front != "" {
			return e.ID, nil
		}
	}
	return "", nil
}

// advance has a front go on above what was routed.
func (r *Repairer) advance(ctx context.Context, a *Action) error {
	w, err := fronts.Open(ctx, r.js, a.Where, fronts.Config{})
	if err != nil {
		return err
	}
	subject := schemas.FrontBlankSubject(a.Where, a.topic.InFronts())
	// The mark stays until what was written since is put again.
	return w.Advance(ctx, subject, a.ends.names(), a.front, func() { r.crash("front advanced") })
}

// restore writes what a front lost of keys, each where the front still has what it had. A key that was changed
// meanwhile is left to the next plan.
func (r *Repairer) restore(ctx context.Context, a *Action) error {
	k := records.Of(a.topic)
	for some := range slices.Chunk(a.lost, fronts.MaxBatch) {
		w, err := r.restoring(ctx, a) // each time: an erasure may have begun
		if err != nil {
			return err
		}
		if some, err = r.notExpired(ctx, a.Topic, some); err != nil {
			return err
		}
		back, err := k.Restore(ctx, r.db, a.topic, some, func() (int64, error) { return w.Now(ctx) })
		if err != nil {
			return err
		}
		if err := putBack(ctx, w, back); err != nil {
			return err
		}
		if err := r.dropBelow(ctx, k.Front, some); err != nil {
			return err
		}
		r.crash(k.Restored + " restored")
	}
	return nil
}

// dropBelow takes out what is not a record below keys that came back.
func (r *Repairer) dropBelow(ctx context.Context, front string, lost []records.Lost) error {
	s, err := streams.Open(ctx, r.js, front)
	if err != nil {
		return err
	}
	for i := range lost {
		if !lost[i].Misplaced {
			continue
		}
		if err := streams.Delete(ctx, r.js, s, lost[i].Expect, false, streams.Refuse); err != nil {
			return err
		}
	}
	return nil
}

// dropEnded takes keys out of a front that are over by their history, unless they went on meanwhile. It writes nothing, so
// the front may still end below what was routed.
func (r *Repairer) dropEnded(ctx context.Context, a *Action) error {
	if id, err := r.erasing(ctx, a.Topic); err != nil {
		return err
	} else if id != "" {
		return fmt.Errorf("the erasure %q of topic %q is under way; run repair again when it is finished", id, a.Topic)
	}
	w, err := fronts.Open(ctx, r.js, a.Where, fronts.Config{})
	if err != nil {
		return err
	}
	s, err := streams.Open(ctx, r.js, a.Where)
	if err != nil {
		return err
	}
	for i := range a.lost {
		l := &a.lost[i]
		msg, err := w.Last(ctx, l.Subject)
		if errors.Is(err, fronts.ErrNotFound) || err == nil && msg.Sequence != l.Expect {
			continue
		}
		if err != nil {
			return err
		}
		if err := streams.PurgeWith(ctx, r.js, s, l.Subject, streams.Refuse, jetstream.WithPurgeSequence(l.Expect+1)); err != nil {
			return err
		}
		r.crash(records.Of(a.topic).Noun + " dropped")
	}
	return nil
}

// restoring opens the front of an action that gives records back: not while an erasure is under way, and not
// before it goes on above what was routed.
func (r *Repairer) restoring(ctx context.Context, a *Action) (*fronts.Writer, error) {
	if id, err := r.erasing(ctx, a.Topic); err != nil {
		return nil, err
	} else if id != "" {
		return nil, fmt.Errorf("the erasure %q began meanwhile; run repair again when it is finished", id)
	}
	info, err := streams.Info(ctx, r.js, a.Where)
	if err != nil {
		return nil, err
	}
	if info.State.LastSeq < a.front { // its records would have sequences of others
		return nil, fmt.Errorf("%s ends at message %d, and must go on above %d first; run repair again", a.Where, info.State.LastSeq, a.front)
	}
	return fronts.Open(ctx, r.js, a.Where, fronts.Config{})
}

// putBack writes records, each where its key still has what was expected. One that was changed meanwhile is left to
// the next plan.
func putBack(ctx context.Context, w *fronts.Writer, records []fronts.Record) error {
	errs := make([]error, len(records))
	var wg sync.WaitGroup
	for i := range records {
		wg.Go(func() {
			if _, errs[i] = w.Put(ctx, records[i]); errors.Is(errs[i], fronts.ErrConflict) {
				errs[i] = nil
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
