package repair

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// What is not a record may have taken the place of a key's records in a front. What ClickHouse has of the key is
// restored in its place. Where it has nothing, the message goes, so that the key can be written again: what was there
// was never stored, and verify names it by the message's dead letter.

// checkSuspects reads the bodies of those that have a record's headers and took the place of others.
func (r *Repairer) checkSuspects(ctx context.Context, k *records.Kind, last map[string]records.Last) error {
	for subject, l := range last {
		if !l.Suspect() {
			continue
		}
		m, err := streams.DecideAt(ctx, r.js, k.Front, l.Seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // it went on meanwhile
		}
		if err != nil {
			return err
		}
		if _, err := k.Parse(m); err != nil {
			last[subject] = records.Last{At: l.At, Replaced: l.Replaced}
		}
	}
	return nil
}

// dropReplacing plans to take out messages that are not records and took the place of what is nowhere: by subject, the
// sequence of its last message.
func (p *Plan) dropReplacing(t *schemas.Topic, front string, subjects map[string]uint64) {
	if len(subjects) == 0 {
		return
	}
	first := slices.Min(slices.Collect(maps.Keys(subjects)))
	p.add(Action{Do: DropMisplaced, Topic: t.Name, Where: front, Rows: uint64(len(subjects)), topic: t, misplaced: subjects,
		Detail: fmt.Sprintf("messages that are not records, on %q first: what they took the place of is not stored", first)})
}

// dropMisplaced takes them out, each where it is still the last of its subject.
func (r *Repairer) dropMisplaced(ctx context.Context, a *Action) error {
	w, err := r.restoring(ctx, a)
	if err != nil {
		return err
	}
	s, err := streams.Open(ctx, r.js, a.Where)
	if err != nil {
		return err
	}
	for _, subject := range slices.Sorted(maps.Keys(a.misplaced)) {
		seq := a.misplaced[subject]
		msg, err := w.Last(ctx, subject)
		if err != nil || msg.Sequence != seq {
			continue // it went on, or went: the next plan sees
		}
		if err := streams.PurgeWith(ctx, r.js, s, subject, streams.Refuse, jetstream.WithPurgeSequence(seq+1)); err != nil {
			return err
		}
		r.crash("stray dropped")
	}
	return nil
}
