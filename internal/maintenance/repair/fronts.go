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
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// A DOCS that lost records, or all of them, gets back from ClickHouse what each document
// is: a stub of its newest version. First its sequences go on above those that were
// routed, since routers pass over what lies below.

// lostDocument is a document whose newest version DOCS does not have.
type lostDocument struct {
	newest tables.Newest
	expect uint64 // the sequence of what DOCS has of it; 0: nothing
}

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
	blanks, err := streams.Subjects(ctx, r.js, front, schemas.FrontBlankSubject(front, t.Name)) // of a repair that was killed
	if err != nil {
		return err
	}
	end := ends.max()
	advance := last < end.Seq
	onward := Action{Do: AdvanceFront, Topic: t.Name, Where: front, topic: t, front: end.Seq, ends: ends,
		Detail: fmt.Sprintf("it ends at message %d, and was routed up to %d", last, end.Seq)}
	if t.Kind == kinds.Timer {
		plan, err := r.planTimers(ctx, t, ends, upTo, advance || len(blanks) > 0)
		if err != nil {
			return err
		}
		if advance {
			plan.advance = &onward
		}
		plan.addTo(p)
		return nil
	}
	if advance || len(blanks) > 0 {
		p.add(onward)
	}
	if err := r.planYoung(ctx, t, p, ends, advance || len(blanks) > 0); err != nil {
		return err
	}
	return r.planDocuments(ctx, t, p, ends, upTo)
}

// planDocuments adds what DOCS lost of a topic. It was routed up to ends, and its lanes are stored up to upTo.
func (r *Repairer) planDocuments(ctx context.Context, t *schemas.Topic, p *Plan, ends routedEnds, upTo map[int]uint64) error {
	last, err := records.Documents.ReadLast(ctx, r.js, t)
	if err != nil {
		return err
	}
	if err := r.checkSuspects(ctx, records.Documents, last); err != nil {
		return err
	}
	var lost []lostDocument
	replaced := map[string]uint64{} // of which ClickHouse has nothing, by subject
	waits := map[string]bool{}
	for subject, l := range last {
		token, _ := schemas.SourceLane(schemas.StreamDocs, subject)
		lane, _ := schemas.ParseLane(token)
		switch {
		case l.Record != nil || l.Replaced == 0:
		case l.At > upTo[lane]: // no dead letter says yet what was replaced
			waits[subject] = true
		default:
			replaced[subject] = l.At
		}
	}
	for lane := range t.Lanes {
		err := r.db.NewestDocuments(ctx, t.Name, lane, nil, func(n tables.Newest) error {
			subject := schemas.DocSubject(t.Name, document.Lane(t, n.ID), n.ID)
			was := last[subject]
			if l, isLost := lostOf(&was, &n); isLost && !waits[subject] {
				lost = append(lost, l)
				delete(replaced, subject)
			}
			return nil
		})
		if err != nil && !errors.Is(err, tables.ErrNoTable) {
			return err
		}
	}
	young, err := r.youngDocuments(ctx, t.Name, ends)
	if err != nil {
		return err
	}
	if lost, err = r.notExpired(ctx, t.Name, withoutYoung(t, lost, last, young)); err != nil {
		return err
	}
	if len(lost) > 0 {
		p.add(Action{Do: RestoreStubs, Topic: t.Name, Where: schemas.StreamDocs, Rows: uint64(len(lost)), Source: "ClickHouse", topic: t, lost: lost, front: ends.max().Seq,
			Detail: fmt.Sprintf("stubs of documents, of which %q is the first", lost[0].newest.ID)})
	}
	if len(waits) > 0 {
		p.note("%s: what took the place of %d documents is not routed yet; run repair again once it is", t.Name, len(waits))
	}
	p.dropReplacing(t, schemas.StreamDocs, replaced)
	return nil
}

// notExpired leaves out the documents whose newest version retention takes: it takes their records
// out of DOCS before their rows. The shards are read after both.
func (r *Repairer) notExpired(ctx context.Context, topic string, lost []lostDocument) ([]lostDocument, error) {
	if len(lost) == 0 {
		return nil, nil
	}
	shards, err := r.reg.Shards(ctx, topic, 0)
	if err != nil {
		return nil, err
	}
	gone := registry.DroppedOf(shards)
	return slices.DeleteFunc(slices.Clone(lost), func(l lostDocument) bool {
		return gone[schemas.ShardRef{Topic: topic, Month: l.newest.Month, ID: l.newest.Shard}]
	}), nil
}

// erasing is an erasure of the topic's front under way: it takes records out of the front
// before it takes their rows, which must not bring them back. "": there is none.
func (r *Repairer) erasing(ctx context.Context, topic string) (id string, err error) {
	erasures, err := r.reg.Ledger(ctx, topic)
	if err != nil {
		return "", err
	}
	for _, e := range erasures.Only(ledger.Settling, ledger.Erasing) {
		if e.Front != "" {
			return e.ID, nil
		}
	}
	return "", nil
}

// lostOf says whether DOCS, which has was of a document, lost its newest version.
func lostOf(was *records.Last, n *tables.Newest) (lostDocument, bool) {
	switch {
	case was.Record == nil:
		return lostDocument{newest: *n, expect: was.At}, n.Op != schemas.OpRemoved
	case n.Seq > was.Row:
		return lostDocument{newest: *n, expect: was.At}, true
	}
	return lostDocument{}, false
}

// advance has a front go on above what was routed.
func (r *Repairer) advance(ctx context.Context, a *Action) error {
	w, err := fronts.Open(ctx, r.js, a.Where, fronts.Config{})
	if err != nil {
		return err
	}
	subject := schemas.FrontBlankSubject(a.Where, a.Topic)
	// The mark stays until what was written since is put again.
	return w.Advance(ctx, subject, a.ends.names(), a.front, func() { r.crash("front advanced") })
}

// restoreStubs writes stubs of documents, each where DOCS still has what it had. A document
// that was changed meanwhile is left to the next plan.
func (r *Repairer) restoreStubs(ctx context.Context, a *Action) error {
	w, err := r.restoring(ctx, a)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(a.lost, fronts.MaxBatch) {
		if some, err = r.notExpired(ctx, a.Topic, some); err != nil {
			return err
		}
		records := make([]fronts.Record, len(some))
		for i := range some {
			records[i] = stubOf(a.topic, &some[i])
		}
		if err := putBack(ctx, w, records); err != nil {
			return err
		}
		r.crash("stubs restored")
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

// stubOf is the stub of a document's newest version.
func stubOf(t *schemas.Topic, l *lostDocument) fronts.Record {
	n := &l.newest
	lane := document.Lane(t, n.ID)
	r := document.Record{
		ID: n.ID, Path: n.Path, Op: n.Op, Version: n.Version, Created: n.Created, Changed: n.Changed,
		Stub: &schemas.FrontPlace{Month: n.Month, Shard: n.Shard, Seq: n.Seq},
	}
	h := r.Header()
	h[jetstream.MsgRollup] = []string{jetstream.MsgRollupSubject}
	return fronts.Record{Subject: schemas.DocSubject(t.Name, lane, n.ID), Header: h, Expect: l.expect, For: fronts.End}
}
