package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/almanac-events/almanac/schemas/sql"
)

func (v *Verifier) topic(ctx context.Context, t *schemas.Topic) (*TopicReport, error) {
	rep := &TopicReport{Topic: t.Name}
	streams.SayWaiting(v.js, t.Name) // a second run soon after finds nothing pending
	gone := goneRows{}
	var err error
	if gone.before, err = v.reg.ErasureRecords(ctx, t.Name); err != nil {
		return nil, err
	}
	// Downstream first: what is routed or stored meanwhile shows as pending, never
	// as missing.
	proofs, stored, err := v.loadProofs(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	if gone.after, err = v.reg.ErasureRecords(ctx, t.Name); err != nil {
		return nil, err
	}
	entries, err := v.reg.Shards(ctx, t.Name, 0)
	if err != nil {
		return nil, err
	}
	var strange []string
	tails, err := streams.Tails(ctx, v.js, t.Name, func(err error) { strange = append(strange, err.Error()) })
	if err != nil {
		return nil, err
	}
	routed, err := streams.Checkpoints(ctx, v.js, t.Name)
	if err != nil {
		return nil, err
	}
	misfits, err := streams.Misfits(ctx, v.js, t.Name, routed)
	if err != nil {
		return nil, err
	}
	strange = append(strange, verifyMisfits(t.Name, misfits)...)
	forgotten, err := v.forgotten(ctx, t.Name, routed)
	if err != nil {
		return nil, err
	}
	strange = append(strange, forgotten...)
	waiting, err := streams.Unrouted(ctx, v.js, t, routed, misfits, streams.Everything)
	if err != nil {
		return nil, err
	}

	read, err := v.heldFrames(ctx, proofs)
	if err != nil {
		return nil, err
	}
	frames := read.held
	rep.Taken.Frames = read.taken
	if read.unread > 0 {
		ends, err := v.unreadableEnds(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		strange = append(strange, ends...)
	}
	months, present, err := v.months(ctx, t)
	if err != nil {
		return nil, err
	}
	strange = append(append(strange, months...), verifyLanes(t, entries, routed)...)
	var inShards, expected uint64
	kept := int64(0)
	known := map[schemas.Shard]bool{}
	for _, e := range entries {
		known[e.ID] = true
		tail, has := tails[e.ID]
		tail.Ref = e.Ref()
		known, err := v.knownEnd(ctx, e, tail, routed)
		if err != nil {
			return nil, err
		}
		s, taken := proofs.taken(&e, tail, &gone, frames[e.ID])
		if taken && known.Pos == 0 {
			rep.Taken.Shards++
			rep.Taken.Rows += s.Stored
			rep.Taken.since(s.provenAt)
		} else {
			s, err = v.shard(ctx, t, e, tail, has, known, frames[e.ID], stored[e.ID], &gone)
		}
		if h := frames[e.ID]; err == nil {
			verifyEntry(s, present[e.ID], h, stored[e.ID])
			if h != nil {
				err = v.cutOff(ctx, s, tail, h)
			}
		}
		if err != nil {
			return nil, err
		}
		if known.Pos == 0 {
			proofs.prove(&e, s, stored[e.ID], tail, &gone)
		}
		kept += e.KeptRows()
		sayFork(s, &e)
		rep.Shards = append(rep.Shards, *s)
		rep.Stored += s.Stored
		rep.Missing += s.missing()
		rep.Doubled += s.doubled()
		rep.Dropped += s.Dropped
		inShards += s.Routed
		rep.Erased += s.Erased
		expected += s.Expected + s.Erased
	}
	unknown, err := v.unknownShards(ctx, t.Name, known, tails, stored)
	if err != nil {
		return nil, err
	}
	rep.Shards = append(rep.Shards, unknown...)
	if read.unread == 0 {
		if err := v.keepProofs(ctx, proofs, read.upTo); err != nil {
			return nil, err
		}
	}
	if v.full {
		damaged, err := v.damagedParts(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		strange = append(strange, damaged...)
	}
	if len(strange) > 0 {
		rep.Shards = append(rep.Shards, ShardReport{Name: t.Name, Problems: strange})
	}

	lost, lostRows := verifyLost(t.Name, routed)
	if len(lost) > 0 {
		rep.Shards = append(rep.Shards, ShardReport{Name: t.Name, Problems: lost})
	}

	var cp checkpoint.Checkpoint
	for _, c := range routed {
		cp.Rows += c.Rows
		cp.Dead += c.Dead
		cp.RepeatedRows += c.RepeatedRows
	}
	rep.Dead, rep.Repeated = cp.Dead, cp.RepeatedRows
	rep.Missing += lostRows
	cp.Rows = uint64(max(0, int64(cp.Rows)+kept))
	rep.Accepted = cp.Rows + cp.Dead + waiting + lostRows
	// Read after the checkpoints: what was settled by hand was dead before.
	if err := v.resolved(ctx, t.Name, &rep.Totals); err != nil {
		return nil, err
	}
	rep.Pending = waiting + cp.Rows - min(cp.Rows, expected)
	if err := v.derived(ctx, t, entries, rep); err != nil {
		return nil, err
	}
	if err := v.replaced(ctx, t, rep); err != nil {
		return nil, err
	}
	if err := v.front(ctx, t, rep); err != nil {
		return nil, err
	}
	// The shards were read before the checkpoints: they may lag, never lead.
	if inShards > cp.Rows {
		rep.Shards = append(rep.Shards, ShardReport{Name: t.Name, Problems: []string{
			fmt.Sprintf("topic %s: its shards have %d rows, its checkpoints say %d were routed", t.Name, inShards, cp.Rows)}})
	}
	return rep, nil
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
func (v *Verifier) unknownShards(ctx context.Context, topic string, known map[schemas.Shard]bool, tails map[schemas.Shard]streams.Tail, stored map[schemas.Shard]tables.Count) ([]ShardReport, error) {
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
