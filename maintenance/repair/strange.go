package repair

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/tables"
)

// maxStrange bounds the rows that a repair removes of one stretch: more are not a slip.
const maxStrange = 1_000

// dropStrange removes the rows between two positions that no frame brought there. It is one
// statement, and a second time there are none. Where the last position is the shard's head,
// one of its rows must be the frame's, or the head would go back.
func (r *Repairer) dropStrange(ctx context.Context, a *Action) error {
	brought := map[string]bool{}
	var reader frame.Reader
	for frames := a.frames; len(frames) > 0; {
		n := batchOf(frames, nil)
		payloads, err := r.payloads(ctx, a, frames[:n])
		if err != nil {
			return err
		}
		for i, payload := range payloads {
			if err := reader.Open(payload, a.topic, frames[i].schema); err != nil {
				return fmt.Errorf("position %d: %w", frames[i].pos, err)
			}
			for row := range reader.Rows() {
				brought[rowKey(frames[i].pos, reader.ID(row).String(), reader.Ts(row))] = true
			}
		}
		frames = frames[n:]
	}
	var strange []string
	head := false
	err := r.db.RowKeys(ctx, a.ref, a.lo, a.hi, func(k tables.RowKey) error {
		if brought[rowKey(k.Pos, k.ID, k.Ts)] {
			head = head || k.Pos == a.hi
			return nil
		}
		if strange = append(strange, fmt.Sprintf("(%d, '%s', fromUnixTimestamp64Nano(%d, 'UTC'))", k.Pos, k.ID, k.Ts)); len(strange) > maxStrange {
			return fmt.Errorf("more than %d rows are not the frames': look at them, and delete them in ClickHouse", maxStrange)
		}
		return nil
	})
	if err != nil || len(strange) == 0 {
		return err
	}
	top, err := r.db.Head(ctx, a.ref)
	switch {
	case err != nil:
		return err
	case !head && a.hi == top:
		return errors.New("no row of the last position is the frame's: delete those that are not in ClickHouse, and repair again")
	}
	if err := r.db.Hide(ctx, a.ref, tables.Condition{SQL: fmt.Sprintf("pos > %d AND pos <= %d AND (pos, id, ts) IN (%s)", a.lo, a.hi, strings.Join(strange, ", "))}); err != nil {
		return err
	}
	r.crash("after hide")
	return nil
}

func rowKey(pos uint64, id string, ts int64) string { return fmt.Sprint(pos, " ", id, " ", ts) }
