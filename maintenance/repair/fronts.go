package repair

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/fronts"
	"github.com/almanac-events/almanac/query/archived"
	documents "github.com/almanac-events/almanac/query/documents"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/tables"
)

// A DOCS that lost records, or all of them, gets back from ClickHouse what each document
// is: a stub of its newest version. First its sequences go on above those that were
// routed, since routers pass over what lies below.

// lostDocument is a document whose newest version DOCS does not have.
type lostDocument struct {
	newest tables.Newest
	expect uint64 // the sequence of what DOCS has of it; 0: nothing
}

// planDocuments adds what the front of a topic of documents needs.
func (r *Repairer) planDocuments(ctx context.Context, t *schemas.Topic, p *Plan) error {
	if id, err := r.erasing(ctx, t.Name); err != nil || id != "" {
		if err == nil {
			p.note("%s: the erasure %s is not finished, and nothing is restored in %s before it is: `almanac erase resume %s`", t.Name, id, schemas.StreamDocs, id)
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
			p.note("%s: lane %d is stored up to %d and was routed up to %d: nothing is restored in %s before the sinks have stored the rest", t.Name, lane, upTo[lane], cp.Source, schemas.StreamDocs)
			return nil
		}
	}
	young, err := r.givenAgain(ctx, t, routed)
	if err != nil {
		return err
	}
	if young > 0 {
		p.note("%s: %s lost records, and took %d since under sequences that were routed before. They would never be routed: repair of that is not built. Save them with `almanac docs export %s`",
			t.Name, schemas.StreamDocs, young, t.Name)
		return nil
	}
	info, err := streams.Info(ctx, r.js, schemas.StreamDocs)
	if err != nil {
		return err
	}
	var end uint64 // of any topic: they share the sequences
	if err := streams.EachCheckpoint(ctx, r.js, schemas.SubjectsRouted, func(cp *streams.Routed) error {
		if cp.Front == schemas.StreamDocs {
			end = max(end, cp.Source)
		}
		return nil
	}); err != nil {
		return err
	}
	blanks, err := streams.Subjects(ctx, r.js, schemas.StreamDocs, blankSubject(t.Name)) // of a repair that was killed
	if err != nil {
		return err
	}
	if last := info.State.LastSeq; last < end || len(blanks) > 0 {
		p.add(Action{Do: AdvanceFront, Topic: t.Name, Where: schemas.StreamDocs, front: end, Detail: fmt.Sprintf("it ends at message %d, and was routed up to %d", last, end)})
	}
	last, err := documents.LastRecords(ctx, r.js, t.Name)
	if err != nil {
		return err
	}
	var lost []lostDocument
	err = r.db.NewestDocuments(ctx, t.Name, nil, func(n tables.Newest) error {
		if l, isLost := lostOf(last[n.ID].Record, &n); isLost {
			lost = append(lost, l)
		}
		return nil
	})
	if err != nil && !errors.Is(err, tables.ErrNoTable) {
		return err
	}
	if len(lost) > 0 {
		p.add(Action{Do: RestoreStubs, Topic: t.Name, Where: schemas.StreamDocs, Rows: uint64(len(lost)), Source: "ClickHouse", topic: t, lost: lost, front: end,
			Detail: fmt.Sprintf("stubs of documents, of which %q is the first", lost[0].newest.ID)})
	}
	return nil
}

// erasing is an erasure of the topic's front under way: it takes records out of the front
// before it takes their rows, which must not bring them back. "": there is none.
func (r *Repairer) erasing(ctx context.Context, topic string) (id string, err error) {
	ledger, err := r.reg.Ledger(ctx, topic)
	if err != nil {
		return "", err
	}
	for _, e := range ledger.Only(registry.Settling, registry.Erasing).Erasures {
		if e.Front != "" {
			return e.ID, nil
		}
	}
	return "", nil
}

// lostOf says whether DOCS, which has r of a document or nil, lost its newest version.
func lostOf(r *document.Record, n *tables.Newest) (lostDocument, bool) {
	switch {
	case r == nil:
		return lostDocument{newest: *n}, n.Op != schemas.OpRemoved
	case n.Seq > r.RowSeq():
		return lostDocument{newest: *n, expect: r.Seq}, true
	}
	return lostDocument{}, false
}

// givenAgain counts the records that DOCS took under sequences which were routed before.
func (r *Repairer) givenAgain(ctx context.Context, t *schemas.Topic, routed map[string]schemas.Checkpoint) (n int, err error) {
	_, err = streams.Headers(ctx, r.js, schemas.StreamDocs, schemas.DocTopicFilter(t.Name), 1, func(m *streams.Message) error {
		lane, ok := schemas.SourceLane(schemas.StreamDocs, m.Subject)
		if cp := routed[lane]; ok && cp.Stored != 0 && m.Sequence <= cp.Source && m.Time.UnixNano() > cp.Stored && schemas.IsEvent(m.Header, m.Size) {
			n++
		}
		return nil
	})
	return n, err
}

// blankSubject is where advance writes: no lane reads it.
func blankSubject(topic string) string { return schemas.DocLockSubject(topic, 0, "repair") }

// advance has DOCS go on above what was routed.
func (r *Repairer) advance(ctx context.Context, a *Action) error {
	w, err := fronts.Open(ctx, r.js, schemas.StreamDocs, fronts.Config{})
	if err != nil {
		return err
	}
	return w.Advance(ctx, blankSubject(a.Topic), a.front, func() { r.crash("front advanced") })
}

// restoreStubs writes stubs of documents, each where DOCS still has what it had. A document
// that was changed meanwhile is left to the next plan.
func (r *Repairer) restoreStubs(ctx context.Context, a *Action) error {
	if id, err := r.erasing(ctx, a.Topic); err != nil || id != "" {
		return errors.Join(err, fmt.Errorf("the erasure %q began meanwhile; run repair again when it is finished", id))
	}
	info, err := streams.Info(ctx, r.js, schemas.StreamDocs)
	if err != nil {
		return err
	}
	if info.State.LastSeq < a.front { // its stubs would have sequences of others
		return fmt.Errorf("%s ends at message %d, and must go on above %d first; run repair again", schemas.StreamDocs, info.State.LastSeq, a.front)
	}
	w, err := fronts.Open(ctx, r.js, schemas.StreamDocs, fronts.Config{})
	if err != nil {
		return err
	}
	for from := 0; from < len(a.lost); from += fronts.MaxBatch {
		some := a.lost[from:min(from+fronts.MaxBatch, len(a.lost))]
		errs := make([]error, len(some))
		var wg sync.WaitGroup
		for i := range some {
			wg.Go(func() {
				if _, errs[i] = w.Put(ctx, stubOf(a.topic, &some[i])); errors.Is(errs[i], fronts.ErrConflict) {
					errs[i] = nil
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		r.crash("stubs restored")
	}
	return nil
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
	return fronts.Record{Subject: schemas.DocSubject(t.Name, lane, n.ID), Header: h, Expect: l.expect}
}
