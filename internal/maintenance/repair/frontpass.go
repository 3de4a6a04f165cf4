package repair

import (
	"context"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// A lane of a front holds several months, whose sinks are not equally far. Where SHARDS is lost, a record that one of
// them had not stored may lie below the last that another had. Such records are routed again, and those around them
// that have their rows are settled.

// heldRecords are the records of a front's lane that are not to be routed again.
type heldRecords struct {
	rows   []uint64                 // sequences of those that have rows, in order
	frames map[schemas.Month]uint64 // up to which SHARDS has them
}

func (h *heldRecords) has(m schemas.Month, seq uint64) bool {
	_, row := slices.BinarySearch(h.rows, seq)
	return row || seq <= h.frames[m]
}

// completeRecords has a lane's new checkpoint, which stands at the last record that anything has of the lane, go back to
// the first that nothing has, where the front still has it. All up to low have their rows.
func (r *Repairer) completeRecords(ctx context.Context, t *found, n int, l *lostLane, low uint64) error {
	if low >= l.cp.Source {
		return nil
	}
	high, front := l.cp.SourceOf(), t.topic.Front()
	held := &heldRecords{frames: map[schemas.Month]uint64{}}
	var shards []schemas.ShardRef
	for _, ref := range t.refs() {
		if t.lane[ref.ID] != n {
			continue
		}
		shards = append(shards, ref)
		if c := t.chains[ref.ID]; len(c) > 0 && c.last().era == l.cp.Era {
			held.frames[ref.Month] = max(held.frames[ref.Month], c.last().source)
		}
	}
	var err error
	if held.rows, err = r.db.RecordSeqs(ctx, t.topic.Name, shards, low, high.Seq); err != nil {
		return err
	}
	next := l.cp
	passing := next.PassFrom(schemas.Source{Seq: low})
	fits := true
	_, err = streams.Headers(ctx, r.js, front, t.topic.SourceFilter(front, l.token), low+1, func(m *streams.Message) error {
		if m.Sequence > high.Seq || !schemas.IsEvent(m.Header, m.Size) {
			return nil
		}
		month, ok := monthOf(front, m)
		fits = passing.Take(schemas.Source{Seq: m.Sequence, Stored: m.Time.UnixNano()}, !ok || held.has(month, m.Sequence)) && fits
		return nil
	})
	if err != nil {
		return fmt.Errorf("repair: %s: %w", front, err)
	}
	if !passing.Left() {
		return nil
	}
	if !fits {
		return fmt.Errorf("repair: %s: ClickHouse has more than %d runs of records behind record %d of %s, which it has not: nothing is changed",
			schemas.RoutedSubject(t.topic.Name, l.token), checkpoint.MaxStoredRuns, next.Source, front)
	}
	l.cp = next
	return nil
}

// monthOf is the month of a record's row; what is not a record has its dead letter.
func monthOf(front string, m *streams.Message) (schemas.Month, bool) {
	r, err := records.OfFront(front).Parse(m)
	if err != nil {
		return 0, false
	}
	return schemas.MonthOf(r.Changed), true
}
