package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// renderer turns units into what the sink takes. One worker has it; its buffers
// are reused.
type renderer struct {
	j      *Job
	reader frame.Reader
	writer *frame.LineWriter
	// single says that lines are taken one by one, and so in the order of time.
	single bool
	lanes  *laneBuilders // when the sink is a topic
}

func (j *Job) newRenderer(single bool) *renderer {
	r := &renderer{j: j, writer: frame.NewLineWriter(&j.topic), single: single}
	if j.target != nil {
		r.lanes = newLaneBuilders(j)
	}
	return r
}

// render opens the unit, drops what the job does not replay, and writes the rest.
func (r *renderer) render(ctx context.Context, u *unit) error {
	if r.lanes != nil {
		r.lanes.begin(u)
	} else {
		u.lines = r.j.buffers.get(u.size())
	}
	if u.data != nil {
		if err := r.frame(ctx, u); err != nil {
			return err
		}
	}
	for _, p := range u.pieces {
		if r.lanes == nil {
			r.writer.Open(&p.block.reader, r.j.topic.Version, u.shard.Month, u.shard.ID)
		}
		for i := p.from; i < p.to; i++ {
			r.row(u, &p.block.reader, i, p.block.reader.StoredPos(i))
		}
	}
	u.data, u.pieces = nil, nil
	if r.lanes != nil {
		r.lanes.end(u)
		return nil
	}
	if r.single {
		u.sort()
	}
	return nil
}

// frame renders a frame as SHARDS has it.
func (r *renderer) frame(ctx context.Context, u *unit) error {
	f, spec := &u.frame, &r.j.spec
	if f.MaxTs < spec.From || f.MinTs > spec.To {
		return nil
	}
	if err := r.reader.Open(u.data, &r.j.topic, f.Schema); err != nil {
		return fmt.Errorf("replay: position %d of %s: %w", f.Pos, u.shard.Name(), err)
	}
	if f.Rows != r.reader.Rows() {
		return fmt.Errorf("replay: position %d of %s: %w: %d rows, its header says %d", f.Pos, u.shard.Name(), schemas.ErrFrameLies, r.reader.Rows(), f.Rows)
	}
	inside := f.MinTs >= spec.From && f.MaxTs <= spec.To
	cond, params, err := r.j.frameCondition(ctx, f)
	if err != nil {
		return err
	}
	if inside && cond == "" && r.lanes != nil && r.lanes.pass(u) {
		return nil
	}
	if r.lanes == nil {
		r.writer.Open(&r.reader, f.Schema, u.shard.Month, u.shard.ID)
	}
	want := func(int) bool { return true }
	if cond != "" {
		rows, err := r.j.matching(ctx, u, r.reader.Raw(), cond, params)
		if err != nil {
			return err
		}
		want = func(i int) bool {
			ok := len(rows) > 0 && rows[0] == uint64(i)
			if ok {
				rows = rows[1:]
			}
			return ok
		}
	}
	for i := range r.reader.Rows() {
		ts := r.reader.Ts(i)
		if !want(i) || !inside && (ts < spec.From || ts > spec.To) {
			continue
		}
		r.row(u, &r.reader, i, f.Pos)
	}
	return nil
}

func (r *renderer) row(u *unit, reader *frame.Reader, i int, pos uint64) {
	u.events++
	if r.lanes != nil {
		r.lanes.add(reader, i)
		return
	}
	from := len(u.lines)
	if r.j.raw {
		u.lines = r.writer.AppendMessage(u.lines, i)
	} else {
		u.lines = r.writer.Append(u.lines, i, pos)
	}
	if r.single {
		u.rows = append(u.rows, entry{ts: reader.Ts(i), id: reader.ID(i), from: from, to: len(u.lines), events: 1})
	}
}

// sort puts a unit's lines in the order of time, those of one time in that of their ids, and
// counts those that have both in common.
func (u *unit) sort() {
	slices.SortStableFunc(u.rows, entry.compare)
	for i := 1; i < len(u.rows); i++ {
		if u.rows[i].compare(u.rows[i-1]) == 0 {
			u.rows[i].nth = u.rows[i-1].nth + 1
		}
	}
}

func (e entry) compare(o entry) int { return cmp.Or(cmp.Compare(e.ts, o.ts), e.id.Compare(o.id)) }
