package query

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/tables"
)

// Verify compares, shard by shard, frames with rows, for one topic or all. It
// may run while events flow: a shard's rows, head and distinct ids come from one
// statement, and frames never change.
func (r *Reader) Verify(ctx context.Context, topic string) (*Report, error) {
	topics, err := r.topics(ctx, topic)
	if err != nil {
		return nil, err
	}
	rep := &Report{}
	for i := range topics {
		t, err := r.verifyTopic(ctx, &topics[i])
		if err != nil {
			return nil, err
		}
		rep.add(t)
	}
	cuts, err := r.verifyCuts(ctx)
	if err != nil {
		return nil, err
	}
	rep.Problems = append(rep.Problems, cuts...)
	if topic != "" {
		return rep, nil
	}
	return rep, r.verifyStrays(ctx, topics, rep)
}

func (r *Reader) verifyTopic(ctx context.Context, t *schemas.Topic) (*TopicReport, error) {
	rep := &TopicReport{Topic: t.Name}
	r.sayWaiting([]string{t.Name}) // whoever looks again soon wants nothing pending
	gone := goneRows{}
	var err error
	if gone.before, err = r.reg.Tallies(ctx, t.Name); err != nil {
		return nil, err
	}
	// Downstream first: what is routed or stored meanwhile shows as pending, never
	// as missing.
	stored, err := r.db.Counts(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	if gone.after, err = r.reg.Tallies(ctx, t.Name); err != nil {
		return nil, err
	}
	if gone.ledger, err = r.reg.Ledger(ctx, t.Name); err != nil {
		return nil, err
	}
	entries, err := r.reg.Shards(ctx, t.Name, 0)
	if err != nil {
		return nil, err
	}
	var strange []string
	tails, err := r.tailsByShard(ctx, t.Name, func(err error) { strange = append(strange, err.Error()) })
	if err != nil {
		return nil, err
	}
	routed, err := r.checkpoints(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	misfits, err := r.misfits(ctx, t.Name, routed)
	if err != nil {
		return nil, err
	}
	strange = append(strange, verifyMisfits(t.Name, misfits)...)
	waiting, err := r.waiting(ctx, t.Name, t.Lanes, routed, misfits, everything)
	if err != nil {
		return nil, err
	}

	frames, unread, err := r.heldFrames(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	if unread > 0 {
		ends, err := r.unreadableEnds(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		strange = append(strange, ends...)
	}
	months, present, err := r.verifyMonths(ctx, t)
	if err != nil {
		return nil, err
	}
	strange = append(append(strange, months...), verifyLanes(t, entries, routed)...)
	var inShards, expected uint64
	known := map[schemas.Shard]bool{}
	for _, e := range entries {
		known[e.ID] = true
		tail, has := tails[e.ID]
		known, err := r.knownEnd(ctx, e, tail, routed)
		if err != nil {
			return nil, err
		}
		s, err := r.verifyShard(ctx, t, e, tail, has, known, frames[e.ID], stored[e.ID], &gone)
		if h := frames[e.ID]; err == nil {
			verifyEntry(s, present[e.ID], h, stored[e.ID])
			if h != nil {
				err = r.holes(ctx, s, tail, h)
			}
		}
		if err != nil {
			return nil, err
		}
		rep.Shards = append(rep.Shards, *s)
		rep.Stored += s.Stored
		rep.Missing += s.missing()
		rep.Doubled += s.doubled()
		rep.Dropped += s.Dropped
		inShards += s.Routed
		rep.Erased += s.Erased
		expected += s.Expected + s.Erased
	}
	unknown, err := r.unknownShards(ctx, t.Name, known, tails, stored)
	if err != nil {
		return nil, err
	}
	rep.Shards = append(rep.Shards, unknown...)
	if len(strange) > 0 {
		rep.Shards = append(rep.Shards, ShardReport{Name: t.Name, Problems: strange})
	}

	var cp schemas.Checkpoint
	for _, c := range routed {
		cp.Rows += c.Rows
		cp.Dead += c.Dead
		cp.RepeatedRows += c.RepeatedRows
	}
	rep.Dead, rep.Repeated = cp.Dead, cp.RepeatedRows
	rep.Accepted = cp.Rows + cp.Dead + waiting
	// Read after the checkpoints: what was settled by hand was dead before.
	if err := r.settled(ctx, t.Name, &rep.Totals); err != nil {
		return nil, err
	}
	rep.Pending = waiting + cp.Rows - min(cp.Rows, expected)
	// The shards were read before the checkpoints: they may lag, never lead.
	if inShards > cp.Rows {
		rep.Shards = append(rep.Shards, ShardReport{Name: t.Name, Problems: []string{
			fmt.Sprintf("topic %s: its shards have %d rows, its checkpoints say %d were routed", t.Name, inShards, cp.Rows)}})
	}
	return rep, nil
}

// unknownShards are shards that have frames or rows and no registry entry, asked
// for once more: a shard may have been made since the entries were read.
func (r *Reader) unknownShards(ctx context.Context, topic string, known map[schemas.Shard]bool, tails map[schemas.Shard]tail, stored map[schemas.Shard]tables.Count) ([]ShardReport, error) {
	months := map[schemas.Shard]schemas.Month{}
	for id, t := range tails {
		months[id] = t.month
	}
	for id, st := range stored {
		months[id] = st.Month
	}
	var out []ShardReport
	for id, month := range months {
		if known[id] {
			continue
		}
		_, err := r.reg.Shard(ctx, topic, month, id)
		if err == nil {
			continue
		}
		if !errors.Is(err, registry.ErrNotFound) {
			return nil, err
		}
		s := ShardReport{Name: schemas.PublicShardName(topic, month, id), Tail: tails[id].Pos, Routed: tails[id].ShardRows, Stored: stored[id].Rows}
		s.problem("%s has %d frames of it and ClickHouse %d rows, the registry does not know it", schemas.StreamShards, s.Tail, s.Stored)
		out = append(out, s)
	}
	return out, nil
}

// everything is a fence that no message lies above.
var everything = schemas.Source{Seq: math.MaxUint64}

// waiting counts a topic's events above the checkpoints and up to a fence, by
// their headers. lanes is how many checkpoints there are when every lane has been
// routed; with fewer the stream is read from its beginning. In lanes of misfits, whose
// checkpoints EVENTS does not fit, what is younger than the checkpoint waits.
func (r *Reader) waiting(ctx context.Context, topic string, lanes int, routed map[string]schemas.Checkpoint, misfits map[string]string, upTo schemas.Source) (uint64, error) {
	from := uint64(math.MaxUint64)
	for _, cp := range routed {
		from = min(from, cp.Source)
	}
	if len(routed) < lanes || len(misfits) > 0 {
		from = 0
	}
	var n uint64
	err := r.Headers(ctx, schemas.StreamEvents, schemas.TopicFilter(topic), from, func(msg *streams.Message) error {
		_, _, lane, err := schemas.EventsTokens(msg.Subject)
		if err != nil || !(schemas.Source{Seq: msg.Sequence, Stored: msg.Time.UnixNano()}).UpTo(upTo) || schemas.IsBlank(msg.Header, nil) {
			return nil
		}
		if cp := routed[lane]; msg.Sequence <= cp.Source && (misfits[lane] == "" || cp.Stored == 0 || msg.Time.UnixNano() <= cp.Stored) {
			return nil
		}
		n += uint64(eventsOf(msg.Header.Get(schemas.HeaderRows)))
		return nil
	})
	return n, err
}

// verifyStrays accounts for messages under topics that were never declared: those kept as
// dead letters, and those that still wait for it.
func (r *Reader) verifyStrays(ctx context.Context, topics []schemas.Topic, rep *Report) error {
	strays := map[string]*TopicReport{}
	for _, t := range topics {
		strays[t.Name] = nil
	}
	of := func(topic string) *TopicReport {
		t, seen := strays[topic]
		if !seen {
			t = &TopicReport{Topic: topic}
			strays[topic] = t
		}
		return t // nil: declared
	}
	err := streams.Latest(ctx, r.js, schemas.StreamShards, schemas.SubjectsRouted, func(msg *streams.Message) error {
		name, _, ok := schemas.RoutedTokens(msg.Subject)
		if !ok || of(name) == nil {
			return nil
		}
		cp, err := schemas.ParseCheckpoint(msg.Data)
		if err != nil {
			rep.Problems = append(rep.Problems, fmt.Sprintf("%s: %s: %s", schemas.StreamShards, msg.Subject, err))
			return nil
		}
		of(name).add(Totals{Dead: cp.Dead, Accepted: cp.Dead})
		return nil
	})
	if err != nil {
		return fmt.Errorf("query: checkpoints: %w", err)
	}
	subjects, err := streams.Subjects(ctx, r.js, schemas.StreamEvents, schemas.SubjectsEvents)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	hidden, err := streams.Hidden(ctx, r.js, schemas.StreamEvents)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	if hidden > 0 {
		rep.Problems = append(rep.Problems, fmt.Sprintf(
			"%s holds %d messages under subjects that NATS does not list (a subject with the byte 0x7F): they cannot be routed; send them again under events.<topic>.<YYYY-MM>.<lane>",
			schemas.StreamEvents, hidden))
	}
	for subject, n := range subjects {
		name, _, _, err := schemas.EventsTokens(subject)
		if err == nil && of(name) != nil {
			of(name).add(Totals{Pending: n, Accepted: n})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(strays)) {
		if t := strays[name]; t != nil {
			if err := r.settled(ctx, name, &t.Totals); err != nil {
				return err
			}
			rep.add(t)
		}
	}
	return nil
}
