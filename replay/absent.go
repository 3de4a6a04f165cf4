package replay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// brought is what frames say of a stretch that SHARDS does not hold: how many rows its positions
// brought, where the frame above it and all below tell.
type brought struct {
	rows  uint64
	known bool
}

// absence is what is missing of positions and what erasures do not explain.
type absence struct{ from, to, rows uint64 }

// absent looks for positions from from up to upTo, of which there are groups of rows in order, that have
// none although no erasure took any there. Where what the frames brought is known, rows that are
// missing elsewhere count as well. A cut that was joined may have been of any of its positions.
func absent(from, upTo uint64, there []group, gone []ledger.Cut, b brought) (first absence, ok bool) {
	cuts := ledger.AddCuts(gone, nil)
	rows := uint64(0)
	next := from
	// lack notes the first run of positions, up to to, that have neither rows nor a cut.
	lack := func(to uint64) {
		for next <= to && !ok {
			for len(cuts) > 0 && cuts[0].Pos < next {
				rows += cuts[0].Rows
				cuts = cuts[1:]
			}
			end := to
			if len(cuts) > 0 {
				if cuts[0].First() <= next {
					next = min(cuts[0].Pos, to) + 1
					continue
				}
				end = min(end, cuts[0].First()-1)
			}
			first, ok = absence{from: next, to: end}, true
		}
	}
	stored := uint64(0)
	for _, g := range there {
		lack(g.pos - 1)
		next, stored = g.pos+1, stored+g.rows
	}
	lack(upTo)
	if !b.known {
		return first, ok
	}
	taken := uint64(0)
	for _, c := range gone {
		if c.First() <= upTo && c.Pos >= from {
			taken += c.Rows
		}
	}
	if left := stored + taken; left < b.rows {
		if !ok {
			first = absence{from: from, to: upTo}
		}
		first.rows, ok = b.rows-left, true
	}
	return first, ok
}

// checkAbsent refuses positions that are neither in SHARDS nor in ClickHouse and that nothing took on
// purpose. What erasures take is asked for after the rows, since one says what it takes before it does.
func (j *Job) checkAbsent(ctx context.Context, s *shard, from, upTo uint64, b brought) error {
	there, err := j.positions(ctx, s, from, upTo)
	if err != nil {
		return err
	}
	if uint64(len(there)) == upTo-from+1 && (!b.known || b.rows <= sum(there)) {
		return nil
	}
	record, err := j.r.cfg.Registry.ErasureRecord(ctx, s.Ref())
	if err != nil {
		return err
	}
	lost, ok := absent(from, upTo, there, record.Cuts(), b)
	if !ok {
		return nil
	}
	entry, err := j.r.cfg.Registry.Shard(ctx, s.Ref())
	if err != nil || entry.Gone() { // past its retention meanwhile
		return err
	}
	what := fmt.Sprintf("%d to %d", lost.from, lost.to)
	if lost.rows > 0 {
		what = fmt.Sprintf("%s of %d events", what, lost.rows)
	}
	return fmt.Errorf("%w: %s of %s are neither in %s nor in ClickHouse, and no erasure took them; run `almanac repair %s`. Where it cannot bring them back, replay the rest with --shard %s, --to-pos %d and --from-pos %d, and the other shards one by one",
		ErrLost, what, s.Name(), schemas.StreamShards, s.Topic, s.ID, lost.from-1, lost.to+1)
}

func sum(groups []group) (rows uint64) {
	for _, g := range groups {
		rows += g.rows
	}
	return rows
}

// positions lists how many rows each position has that has any.
func (j *Job) positions(ctx context.Context, s *shard, from, upTo uint64) (out []group, err error) {
	body, err := j.r.cfg.DB.Select(ctx, &tables.Select{
		SQL: sql.Positions{
			Table: j.table(), Where: fmt.Sprintf("month = %d AND shard = %d", uint32(s.Month), uint64(s.ID)), Above: max(from, 1) - 1, UpTo: upTo,
		}.SQL(),
		Settings: readSettings,
	})
	if err != nil {
		return nil, fmt.Errorf("replay: positions of %s: %w", s.Name(), err)
	}
	defer func() { _ = body.Close() }()
	if out, err = scanGroups(body, math.MaxUint64); err != nil {
		return nil, fmt.Errorf("replay: positions of %s: %w", s.Name(), err)
	}
	return out, nil
}

// scanGroups reads positions and their rows, until these are many.
func scanGroups(body io.Reader, many uint64) (out []group, err error) {
	lines := bufio.NewReader(body)
	for total := uint64(0); total < many; {
		var g group
		if _, err := fmt.Fscanln(lines, &g.pos, &g.rows); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		total += g.rows
		out = append(out, g)
	}
	return out, nil
}
