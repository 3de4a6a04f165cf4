package reconcile

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// Table is what ClickHouse is asked: *tables.DB.
type Table interface {
	At(ctx context.Context, ref schemas.ShardRef, pos uint64) (tables.Group, error)
	Holds(ctx context.Context, ref schemas.ShardRef, f *schemas.Frame, r *frame.Reader, lo, hi uint64) (bool, error)
}

// Look reports what ClickHouse has at the position of a frame, whose topic has the fields of the frame's
// version. gone is what erasures took of its shard, or will: it is asked after the rows, since an
// erasure says what it takes before it does. One may begin between the two all the same, so what
// is not the frame is looked at twice.
func Look(ctx context.Context, db Table, topic *schemas.Topic, ref schemas.ShardRef, p *schemas.Placed, payload []byte, gone func() ([]ledger.Cut, error)) (Presence, error) {
	var r frame.Reader
	if err := r.Open(payload, topic, p.Schema); err != nil {
		return Absent, fmt.Errorf("position %d of %s: %w", p.Pos, ref, err)
	}
	found := Absent
	for try := 0; try < 2 && (found == Absent || found == Other); try++ {
		there, err := db.At(ctx, ref, p.Pos)
		if err != nil {
			return Absent, err
		}
		cuts, err := gone()
		if err != nil {
			return Absent, err
		}
		if found = At(p.Pos, uint64(r.Rows()), r.IDSum(), there, cuts); found != Partly {
			continue
		}
		some, err := db.Holds(ctx, ref, &p.Frame, &r, p.Pos, p.Pos)
		if err != nil {
			return Absent, err
		}
		if !some {
			found = Other
		}
	}
	return found, nil
}

// ErasureRecords are where the erasure record of a shard is: *registry.Registry.
type ErasureRecords interface {
	ErasureRecord(ctx context.Context, ref schemas.ShardRef) (ledger.ErasureRecord, error)
}

// Gone reads what erasures took of a shard, or will.
func Gone(ctx context.Context, t ErasureRecords, ref schemas.ShardRef) func() ([]ledger.Cut, error) {
	return func() ([]ledger.Cut, error) {
		record, err := t.ErasureRecord(ctx, ref)
		return record.Cuts(), err
	}
}
