package repair

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas/frame"
)

// maxStrange bounds the rows that a repair removes of one stretch: more are not a slip.
const maxStrange = 1_000

// strangers are the rows of a stretch that no frame brought there.
type strangers struct {
	rows []tables.RowKey
	head bool // a row of the last position is the frame's
}

// list is them as elements of an IN.
func list(rows []tables.RowKey) string {
	out := make([]string, len(rows))
	for i, k := range rows {
		out[i] = fmt.Sprintf("(%d, '%s', fromUnixTimestamp64Nano(%d, 'UTC'))", k.Pos, k.ID, k.Ts)
	}
	return strings.Join(out, ", ")
}

// strangers reads the frames of an action's stretch, and its rows.
func (r *Repairer) strangers(ctx context.Context, a *Action) (s strangers, err error) {
	brought := map[string]bool{}
	var reader frame.Reader
	for frames := a.frames; len(frames) > 0; {
		n := batchOf(frames, nil)
		payloads, err := r.payloads(ctx, a, frames[:n])
		if err != nil {
			return s, err
		}
		for i, payload := range payloads {
			if err := reader.Open(payload, a.topic, frames[i].schema); err != nil {
				return s, fmt.Errorf("position %d: %w", frames[i].pos, err)
			}
			for row := range reader.Rows() {
				brought[rowKey(frames[i].pos, reader.ID(row).String(), reader.Ts(row))] = true
			}
		}
		frames = frames[n:]
	}
	err = r.db.RowKeys(ctx, a.ref, a.lo, a.hi, func(k tables.RowKey) error {
		if brought[rowKey(k.Pos, k.ID, k.Ts)] {
			s.head = s.head || k.Pos == a.hi
			return nil
		}
		if s.rows = append(s.rows, k); len(s.rows) > maxStrange {
			return fmt.Errorf("more than %d rows are not the frames': look at them, and delete them in ClickHouse", maxStrange)
		}
		return nil
	})
	return s, err
}

// dropStrange removes the rows between two positions that no frame brought there. It is one
// statement, and a second time there are none.
func (r *Repairer) dropStrange(ctx context.Context, a *Action) error {
	s, err := r.strangers(ctx, a)
	if err != nil {
		return err
	}
	return r.hideRows(ctx, a, s.rows, s.head)
}

// hideRows removes rows of a stretch. Where its last position is the shard's head, one of its rows must be the frame's, or
// the head would go back.
func (r *Repairer) hideRows(ctx context.Context, a *Action, rows []tables.RowKey, head bool) error {
	if len(rows) == 0 {
		return nil
	}
	top, err := r.db.Head(ctx, a.ref)
	switch {
	case err != nil:
		return err
	case !head && a.hi == top:
		return errors.New("no row of the last position is the frame's: delete those that are not in ClickHouse, and repair again")
	}
	if err := r.db.Hide(ctx, a.ref, tables.Condition{SQL: fmt.Sprintf("pos > %d AND pos <= %d AND (pos, id, ts) IN (%s)", a.lo, a.hi, list(rows))}); err != nil {
		return err
	}
	r.crash("after hide")
	return nil
}

func rowKey(pos uint64, id string, ts int64) string { return fmt.Sprint(pos, " ", id, " ", ts) }
