package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// topic verifies one topic: it reads, compares shard by shard, and adds up.
func (v *Verifier) topic(ctx context.Context, t *schemas.Topic) (*TopicReport, error) {
	if !v.patient {
		streams.SayWaiting(v.js, t.Name) // a second run soon after finds nothing pending
	}
	l, err := v.look(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := v.compareShards(ctx, l); err != nil {
		return nil, err
	}
	if l.unknown, err = v.unknownShards(ctx, l); err != nil {
		return nil, err
	}
	if l.frames.unread == 0 {
		if err := v.keepProofs(ctx, l.proofs, l.frames.upTo); err != nil {
			return nil, err
		}
	}
	if v.full {
		damaged, err := v.damagedParts(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		l.problems = append(l.problems, damaged...)
	}
	// Read after the checkpoints: what was resolved by hand was dead before.
	if l.letters, err = v.letters(ctx, t.Name); err != nil {
		return nil, err
	}
	rep := l.report()
	if err := v.derived(ctx, t, l.entries, rep); err != nil {
		return nil, err
	}
	if err := v.replaced(ctx, t, rep); err != nil {
		return nil, err
	}
	return rep, v.front(ctx, t, rep)
}

// damagedParts names the parts of which a file differs from its checksum.
func (v *Verifier) damagedParts(ctx context.Context, topic string) (problems []string, err error) {
	bad, err := v.db.CheckParts(ctx, topic)
	if err != nil {
		return nil, err
	}
	for _, d := range bad {
		problems = append(problems, fmt.Sprintf("part %s is damaged on disk (%s): run ALTER TABLE %s DETACH PART '%s' in ClickHouse, then `almanac repair %s`, which stores its rows again",
			d.Part, d.Message, sql.QuotedTable(v.db.Database, topic), d.Part, topic))
	}
	return problems, nil
}

// unknownShards are shards that have frames or rows and no registry entry, asked
// for once more: a shard may have been made since the entries were read.
func (v *Verifier) unknownShards(ctx context.Context, l *look) ([]ShardReport, error) {
	topic, tails, stored, known := l.topic.Name, l.tails, l.stored, map[schemas.Shard]bool{}
	for i := range l.entries {
		known[l.entries[i].ID] = true
	}
	months := map[schemas.Shard]schemas.Month{}
	for id, t := range tails {
		months[id] = t.Ref.Month
	}
	for id, st := range stored {
		months[id] = st.Month
	}
	var out []ShardReport
	for id, month := range months {
		if known[id] {
			continue
		}
		_, err := v.reg.Shard(ctx, schemas.ShardRef{Topic: topic, Month: month, ID: id})
		if err == nil {
			continue
		}
		if !errors.Is(err, registry.ErrNotFound) && !errors.Is(err, registry.ErrUnreadable) {
			return nil, err
		}
		s := ShardReport{Name: schemas.PublicShardName(topic, month, id), Tail: tails[id].Pos, Routed: tails[id].ShardRows, Stored: stored[id].Rows}
		s.problem("%s has %d frames of it and ClickHouse %d rows, the registry does not know it; run `almanac repair %s`, which restores its entry, or says that no router made it", schemas.StreamShards, s.Tail, s.Stored, topic)
		out = append(out, s)
	}
	return out, nil
}
