package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// DOCS was restored from an older copy, or lost its end, and documents were written before that was noticed:
// on top of older versions than ClickHouse has, and under sequences that were routed before. What was written last is
// what was acknowledged last. So it becomes the version after the newest that ClickHouse has. Of several such
// versions of one document the last one stays.

// againOf is a document's young record as it is put again, above its newest stored version, nil without one.
func againOf(r document.Record, newest *tables.Newest) document.Record {
	r.Stub, r.Refresh = nil, nil
	if newest == nil {
		return r
	}
	r.Version = max(r.Version, newest.Version+1)
	if newest.Op == schemas.OpRemoved || r.Removed() {
		return r
	}
	if r.Created = newest.Created; r.Op == schemas.OpStored {
		r.Op = schemas.OpUpdated
	}
	return r
}

// planYoung adds the documents whose last records DOCS took under sequences that were routed before. marked: DOCS has
// or will have a mark.
func (r *Repairer) planYoung(ctx context.Context, t *schemas.Topic, p *Plan, ends routedEnds, marked bool) error {
	young, err := r.youngDocuments(ctx, t.Name, ends)
	if err != nil || !marked && len(young) == 0 {
		return err
	}
	p.add(Action{Do: PutAgain, Topic: t.Name, Where: schemas.StreamDocs, Rows: uint64(len(young)), Source: schemas.StreamDocs, topic: t, front: ends.max().Seq, ends: ends,
		Detail: fmt.Sprintf("%d records so far took sequences that were routed before", len(young))})
	return nil
}

// youngMessage is a record of DOCS under a sequence that was routed before.
type youngMessage struct {
	subject string
	seq     uint64
}

// youngDocuments are those of a topic, or of every topic, the oldest first.
func (r *Repairer) youngDocuments(ctx context.Context, topic string, ends routedEnds) (young []youngMessage, err error) {
	_, err = streams.Headers(ctx, r.js, schemas.StreamDocs, schemas.DocTopicFilter(topic), 1, func(m *streams.Message) error {
		if schemas.IsEvent(m.Header, m.Size) && ends.young(m.Sequence, m.Time.UnixNano()) {
			young = append(young, youngMessage{m.Subject, m.Sequence})
		}
		return nil
	})
	return young, err
}

// putDocumentsAgain gives young documents records whose sequences were not given before, and takes out the messages
// that took those. It looks for them now: DOCS ends above what was routed, so no process writes below any more.
func (r *Repairer) putDocumentsAgain(ctx context.Context, a *Action) error {
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
	young, err := r.youngDocuments(ctx, a.Topic, ends)
	if err != nil {
		return err
	}
	subjects := map[string]bool{}
	for _, m := range young {
		subjects[m.subject] = true
	}
	for subject := range subjects {
		if err := r.putDocumentAgain(ctx, w, a, subject, ends); err != nil {
			return err
		}
		r.crash("document put again")
	}
	s, err := streams.Open(ctx, r.js, schemas.StreamDocs)
	if err != nil {
		return err
	}
	for _, m := range young {
		if err := streams.Delete(ctx, r.js, s, m.seq, false); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
	}
	r.crash("young documents gone")
	return streams.Purge(ctx, r.js, a.Where, schemas.FrontBlankSubject(a.Where, a.Topic))
}

// putDocumentAgain puts a document's last record again, where that is young.
func (r *Repairer) putDocumentAgain(ctx context.Context, w *fronts.Writer, a *Action, subject string, ends routedEnds) error {
	var was document.Record
	msg, last, err := fronts.Newest(ctx, w, subject, func(m *streams.Message) (_ *streams.Message, err error) {
		was, err = document.Parse(m.Subject, m.Sequence, m.Header, m.Data, m.Size)
		return m, err
	})
	if errors.Is(err, fronts.ErrReplaced) || err == nil && (msg == nil || !ends.young(msg.Sequence, msg.Time.UnixNano())) {
		return nil // it went on above, or is not a record: a router keeps that as a dead letter
	}
	if err != nil {
		return err
	}
	var newest *tables.Newest
	lane, err := schemas.ParseLane(was.Lane)
	if err != nil {
		return err
	}
	err = r.db.NewestDocuments(ctx, a.Topic, lane, []string{was.ID}, func(n tables.Newest) error {
		newest = &n
		return nil
	})
	if err != nil && !errors.Is(err, tables.ErrNoTable) {
		return err
	}
	next := againOf(was, newest)
	if _, err := w.Put(ctx, fronts.Record{Subject: subject, Header: next.Header(), Data: msg.Data, Expect: last}); err != nil {
		return fmt.Errorf("document %q: %w; run repair again", was.ID, err)
	}
	return nil
}

// withoutYoung leaves out what is put again.
func withoutYoung(t *schemas.Topic, lost []lostDocument, last map[string]records.Last, young []youngMessage) []lostDocument {
	return slices.DeleteFunc(lost, func(l lostDocument) bool {
		r := last[schemas.DocSubject(t.Name, document.Lane(t, l.newest.ID), l.newest.ID)]
		return r.Record != nil && slices.ContainsFunc(young, func(m youngMessage) bool { return m.seq == r.Seq && strings.HasSuffix(m.subject, "."+l.newest.ID) })
	})
}
