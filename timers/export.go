package timers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

const (
	// specsAtOnce bounds the specs of one read: some 5 MiB.
	specsAtOnce = 50
	// maxPageBytes ends a page of a list: its specs.
	maxPageBytes = 8 << 20
)

// Export calls f with each timer of a group that is pending, with its spec, by due time and id. firing is how many are being
// called at this moment: they are not exported.
func (t *Timers) Export(ctx context.Context, group string, f func(*Timer) error) (firing int, err error) {
	if _, err := t.group(ctx, group); err != nil {
		return 0, err
	}
	last, err := t.records(ctx, schemas.TimerGroupFilter(t.topic.InFronts(), group), nil)
	if err != nil {
		return 0, err
	}
	var out []*timer.Record
	for _, r := range last {
		switch r.State() {
		case timer.StatePending:
			out = append(out, r)
		case timer.StateFiring:
			firing++
		case timer.StateDone, timer.StateFailed, timer.StateCancelled:
		}
	}
	slices.SortFunc(out, byDue)
	for some := range slices.Chunk(out, specsAtOnce) {
		seen, err := t.visible(ctx, some)
		if err != nil {
			return firing, err
		}
		if _, err := t.readSpecs(ctx, seen); err != nil {
			return firing, err
		}
		for _, r := range seen {
			tm := view(r)
			if err := f(&tm); err != nil {
				return firing, err
			}
		}
	}
	return firing, nil
}

func byDue(a, b *timer.Record) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), strings.Compare(a.Key.ID, b.Key.ID))
}

// readSpecs reads the specs of records that were read by their headers, and returns their bytes. A record that has another
// after it by now keeps what it said; of one whose spec is gone it stays nil.
func (t *Timers) readSpecs(ctx context.Context, records []*timer.Record) (bytes int, err error) {
	own, subjects := map[string]*timer.Record{}, make([]string, 0, len(records))
	for _, r := range records {
		if r.SpecSeq == 0 && r.Spec == nil {
			own[r.Key.Subject()], subjects = r, append(subjects, r.Key.Subject())
		}
	}
	if len(subjects) > 0 {
		err = t.w.LastOf(ctx, subjects, func(m *streams.Message) error {
			r := own[m.Subject]
			if whole, err := timer.Parse(m.Subject, m.Sequence, m.Header, m.Data); err == nil && whole.Seq == r.Seq {
				r.Spec = whole.Spec
			}
			return nil
		})
	}
	for _, r := range records {
		if err != nil {
			return bytes, err
		}
		if r.Spec == nil {
			var m *streams.Message
			if m, err = streams.DecideAt(ctx, t.js, schemas.StreamTimers, r.SpecAt()); errors.Is(err, jetstream.ErrMsgNotFound) {
				err = nil
				continue
			} else if err != nil {
				return bytes, err
			}
			if from, err := timer.Parse(m.Subject, m.Sequence, m.Header, m.Data); err == nil && m.Subject == r.Key.Subject() && from.Life == r.Life {
				r.Spec = from.Spec
			}
		}
		if r.Spec != nil {
			n := len(r.Spec.Payload) + len(r.Spec.URL)
			bytes, err = bytes+n, budget.Of(ctx).Take(int64(n))
		}
	}
	return bytes, err
}
