package erasure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/tables"
)

// A front that is restored from a copy from before an erasure by users has their records again, of which ClickHouse no
// longer has a row and so cannot name them: their headers do. A document of which ClickHouse still has a version
// stays, and verify names it: repair restores that version in its place.

// returned takes out of a front what came back there of what an erasure by users means.
func (x *Eraser) returned(ctx context.Context, e *ledger.Erasure, s jetstream.Stream) error {
	found, err := x.findReturned(ctx, e.Topic, e.Front, ledger.Erasures{*e})
	if err != nil {
		return err
	}
	for subject := range found[e.ID] {
		if err := x.overwrite(ctx, s, subject, func(m *streams.Message) bool { return meansRecord(e, m) }); err != nil {
			return fmt.Errorf("erase: %s: %w", subject, err)
		}
	}
	return nil
}

// findReturned are the subjects of a topic's front where all that is there is meant by an erasure, and of whose document
// ClickHouse has nothing: by the ids of the erasures.
func (x *Eraser) findReturned(ctx context.Context, topic, front string, all ledger.Erasures) (map[string]map[string]bool, error) {
	var by []*ledger.Erasure
	for i := range all {
		if e := &all[i]; e.Front == front && len(e.Users) > 0 && e.Where == "" && !e.Redacted {
			by = append(by, e)
		}
	}
	if len(by) == 0 {
		return nil, nil
	}
	meant := map[string][]string{} // erasures that mean something of a subject
	keys := map[string]string{}    // the document or the life of each such subject
	stays := map[string]bool{}
	if _, err := streams.Headers(ctx, x.js, front, schemas.SourceTopicFilter(front, topic), 1, func(m *streams.Message) error {
		key, err := keyOf(front, m)
		if err != nil {
			return nil // not a record
		}
		any := false
		for _, e := range by {
			if meansRecord(e, m) {
				any = true
				if !slices.Contains(meant[m.Subject], e.ID) {
					meant[m.Subject] = append(meant[m.Subject], e.ID)
				}
			}
		}
		switch was, ok := keys[m.Subject]; {
		case !any, ok && was != key:
			stays[m.Subject] = true // stubs and removals name no user
		default:
			keys[m.Subject] = key
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("erase: %s: %w", front, err)
	}
	maps.DeleteFunc(meant, func(subject string, _ []string) bool { return stays[subject] })
	out := map[string]map[string]bool{}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(meant)), maxTouched) {
		there, err := x.inClickHouse(ctx, topic, front, some, keys)
		if err != nil {
			return nil, err
		}
		for _, subject := range some {
			for _, id := range meant[subject] {
				if out[id] == nil {
					out[id] = map[string]bool{}
				}
				if !there[keys[subject]] {
					out[id][subject] = true
				}
			}
		}
	}
	return out, nil
}

// keyOf names a message's document, or the life of its timer.
func keyOf(front string, m *streams.Message) (string, error) {
	if front == schemas.StreamTimers {
		r, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil)
		return r.Life.String(), err
	}
	r, err := document.Parse(m.Subject, m.Sequence, m.Header, nil, m.Size)
	return r.ID, err
}

// inClickHouse are those of the documents of some subjects of which ClickHouse has rows. Of a timer it has the record that
// cancelled it, and its life is meant whole.
func (x *Eraser) inClickHouse(ctx context.Context, topic, front string, subjects []string, keys map[string]string) (map[string]bool, error) {
	there := map[string]bool{}
	if front == schemas.StreamTimers {
		return there, nil
	}
	asked := make([]string, len(subjects))
	for i, subject := range subjects {
		asked[i] = keys[subject]
	}
	err := x.cfg.DB.NewestDocuments(ctx, topic, asked, func(n tables.Newest) error {
		there[n.ID] = true
		return nil
	})
	if err != nil && !errors.Is(err, tables.ErrNoTable) {
		return nil, fmt.Errorf("erase: %w", err)
	}
	return there, nil
}

// meansRecord reports whether an erasure by users means a record of a front, by its headers. One that was stored after
// the fence under a sequence that was given again is not meant.
func meansRecord(e *ledger.Erasure, m *streams.Message) bool {
	seq, changed, user, err := frontSays(e.Front, m)
	if err != nil || changed < e.From || changed > e.To || !slices.Contains(e.Users, user) {
		return false
	}
	if seq != m.Sequence { // the cleaner put it again
		return seq <= e.Fence
	}
	return schemas.Source{Seq: seq, Stored: m.Time.UnixNano()}.UpTo(e.UpTo())
}

// behindFronts adds to behind the erasures that have ended and whose records are in their fronts again.
func (x *Eraser) behindFronts(ctx context.Context, all map[string]ledger.Erasures, behind map[string][]string) error {
	for topic, l := range all {
		ended := slices.DeleteFunc(slices.Clone(l), func(e ledger.Erasure) bool { return !e.Ended() || slices.Contains(behind[topic], e.ID) })
		for _, front := range []string{schemas.StreamDocs, schemas.StreamTimers} {
			found, err := x.findReturned(ctx, topic, front, ended)
			if err != nil {
				return err
			}
			for _, id := range slices.Sorted(maps.Keys(found)) {
				if len(found[id]) > 0 {
					behind[topic] = append(behind[topic], id)
				}
			}
		}
	}
	return nil
}
