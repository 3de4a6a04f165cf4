package replay

import (
	"context"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
)

// shard is a shard's part in a job: its positions from to to, both inclusive.
type shard struct {
	registry.Shard
	subject  string
	tailSeq  uint64 // in SHARDS
	held     uint64 // the last position that SHARDS has, 0 for none: what is above it only ClickHouse has
	from, to uint64
	rows     uint64   // an estimate of its events between them
	at       position // how far the sink has taken it
	// unsaved is the first position that a topic was sent since the cursor was saved.
	unsaved uint64
}

// shards are the shards that a job reads, in the order of registry.Compare. It never changes for two shards,
// so a job that is taken up again finds those it has done before the one it was at. A shard ends where SHARDS says. Where
// SHARDS lost the shard's end, or all of it, it ends where ClickHouse does.
func (j *Job) shards(ctx context.Context) ([]*shard, error) {
	entries, err := j.r.cfg.Registry.Shards(ctx, j.topic.Name, 0)
	if err != nil {
		return nil, err
	}
	stored, err := j.r.cfg.DB.AllStored(ctx, j.topic.Name) // before the tails, so that these lead
	if err != nil {
		return nil, err
	}
	tails, err := streams.Tails(ctx, j.r.js, j.topic.Name, nil)
	if err != nil {
		return nil, err
	}
	var out []*shard
	known := false
	for _, e := range entries {
		if j.spec.Shard != 0 && e.ID != j.spec.Shard {
			continue
		}
		known = true
		tail, there := tails[e.ID], stored[e.Ref()]
		if tail.Pos == 0 && there.Head == 0 && !e.Gone() || !e.Overlaps(j.spec.From, j.spec.To) {
			continue
		}
		if e.Gone() { // past its retention; a job that stood in it goes on after it
			out = append(out, &shard{Shard: e, from: 1})
			continue
		}
		s := &shard{
			Shard: e, subject: e.Ref().Subject(), tailSeq: tail.Seq, held: tail.Pos,
			from: max(1, j.spec.FromPos), to: tail.Pos,
		}
		rows := tail.ShardRows
		switch {
		case tail.Seq > j.spec.UpTo: // grew since the job began
			next, err := streams.FrameFrom(ctx, j.r.js, s.subject, j.spec.UpTo+1)
			if err != nil {
				return nil, err
			}
			s.to = next.Pos - 1
		case there.Head > tail.Pos && !e.Forked():
			s.to, rows = there.Head, there.Rows
		}
		if j.spec.ToPos > 0 {
			s.to = min(s.to, j.spec.ToPos)
		}
		j.bound(s)
		if s.from > s.to {
			continue
		}
		s.rows = uint64(float64(rows) * float64(s.to-s.from+1) / float64(max(tail.Pos, there.Head)))
		out = append(out, s)
	}
	if err := j.bounded(); err != nil {
		return nil, err
	}
	if j.spec.Shard != 0 && !known {
		return nil, refuse(nil, "topic %q has no shard %s; `almanac shards %s` lists them", j.topic.Name, j.spec.Shard, j.topic.Name)
	}
	return out, nil
}
