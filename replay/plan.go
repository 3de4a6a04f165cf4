package replay

import (
	"context"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/streams"
)

// shard is a shard's part in a job: its positions from to to, both inclusive.
type shard struct {
	registry.Shard
	subject  string
	tailSeq  uint64 // in SHARDS
	from, to uint64
	rows     uint64 // an estimate of its events between them
	at       mark   // how far the sink has taken it
	// unsaved is the first position that a topic was sent since the cursor was saved.
	unsaved uint64
}

// shards are the shards that a job reads, in the order of registry.Compare. It never changes for two shards,
// so a job that is taken up again finds those it has done before the one it was at.
func (j *Job) shards(ctx context.Context) ([]*shard, error) {
	entries, err := j.r.cfg.Registry.Shards(ctx, j.topic.Name, 0)
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
		tail, ok := tails[e.ID]
		if !ok || !e.Overlaps(j.spec.From, j.spec.To) {
			continue
		}
		if e.Gone() { // past its retention; a job that stood in it goes on behind it
			out = append(out, &shard{Shard: e, from: 1})
			continue
		}
		s := &shard{
			Shard: e, subject: e.Ref().Subject(), tailSeq: tail.Seq,
			from: max(1, j.spec.FromPos), to: tail.Pos,
		}
		if tail.Seq > j.spec.UpTo { // grew since the job began
			next, err := streams.FrameFrom(ctx, j.r.js, s.subject, j.spec.UpTo+1)
			if err != nil {
				return nil, err
			}
			s.to = next.Pos - 1
		}
		if j.spec.ToPos > 0 {
			s.to = min(s.to, j.spec.ToPos)
		}
		j.bound(s)
		if s.from > s.to {
			continue
		}
		s.rows = uint64(float64(tail.ShardRows) * float64(s.to-s.from+1) / float64(tail.Pos))
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
