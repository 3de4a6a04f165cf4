package query

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// Totals are what was accepted against what became of it, in events.
type Totals struct {
	Accepted uint64 `json:"accepted"`
	Stored   uint64 `json:"stored"`
	Dead     uint64 `json:"dead"`
	Pending  uint64 `json:"pending"`
	Missing  uint64 `json:"missing"`
	Doubled  uint64 `json:"doubled"`
	// Dropped events went with their shard, past their topic's retention.
	Dropped uint64 `json:"dropped"`
	// Erased events were stored, and are gone because somebody said so; see the
	// ledger.
	Erased uint64 `json:"erased"`
	// Discarded events were dead letters that somebody dropped.
	Discarded uint64 `json:"discarded"`
	// Repeated events came again from a producer that had no answer, and were
	// refused: they are in none of the other numbers.
	Repeated uint64 `json:"repeated"`
}

func (t *Totals) add(u Totals) {
	t.Accepted += u.Accepted
	t.Stored += u.Stored
	t.Dead += u.Dead
	t.Pending += u.Pending
	t.Missing += u.Missing
	t.Doubled += u.Doubled
	t.Dropped += u.Dropped
	t.Erased += u.Erased
	t.Discarded += u.Discarded
	t.Repeated += u.Repeated
}

// Report is the proof.
type Report struct {
	Totals
	Topics []TopicReport `json:"topics"`
	// Problems name each fault with its exact range.
	Problems []string `json:"problems,omitempty"`
}

// OK says whether nothing is missing, doubled or unexplained.
func (r *Report) OK() bool { return r.Missing == 0 && r.Doubled == 0 && len(r.Problems) == 0 }

// TopicReport is the proof for one topic.
type TopicReport struct {
	Topic string `json:"topic"`
	Totals
	Shards []ShardReport `json:"shards"`
}

// ShardReport compares one shard with its frames.
type ShardReport struct {
	Name string `json:"name"`
	// Routed is the rows of all its frames; Expected those of the frames up to
	// the head; Stored and Distinct what ClickHouse holds.
	Routed uint64 `json:"routed"`
	// Expected leaves out what was Erased of them.
	Expected uint64 `json:"expected"`
	Erased   uint64 `json:"erased"`
	Stored   uint64 `json:"stored"`
	Distinct uint64 `json:"distinct"`
	Head     uint64 `json:"head"`
	Tail     uint64 `json:"tail"`
	// Dropped is the rows retention dropped, Note when and why.
	Dropped  uint64   `json:"dropped,omitempty"`
	Note     string   `json:"note,omitempty"`
	Problems []string `json:"problems,omitempty"`

	standIn uint64 // rows that are there twice in place of others
	proven  uint64 // position up to which all was stored once, when above the head
}

func (s *ShardReport) problem(format string, a ...any) {
	s.Problems = append(s.Problems, s.Name+": "+fmt.Sprintf(format, a...))
}

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
	if topic != "" {
		return rep, nil
	}
	return rep, r.verifyStrays(ctx, topics, rep)
}

func (r *Report) add(t *TopicReport) {
	r.Topics = append(r.Topics, *t)
	r.Totals.add(t.Totals)
	for _, s := range t.Shards {
		r.Problems = append(r.Problems, s.Problems...)
	}
}

func (r *Reader) verifyTopic(ctx context.Context, t *schemas.Topic) (*TopicReport, error) {
	rep := &TopicReport{Topic: t.Name}
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
	waiting, err := r.waiting(ctx, t.Name, t.Lanes, routed, math.MaxUint64)
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
		s, err := r.verifyShard(ctx, t, e, tail, has, frames[e.ID], stored[e.ID], &gone)
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

func (r *Reader) verifyShard(ctx context.Context, topic *schemas.Topic, e registry.Shard, t tail, has bool, h *held, st tables.Count, gone *goneRows) (*ShardReport, error) {
	s := &ShardReport{Name: e.Name(), Stored: st.Rows, Distinct: st.Distinct, Head: max(st.Head, e.Floor)}
	if e.Gone() {
		return s, r.verifyGone(ctx, s, e, t, has, gone)
	}
	if !has {
		t.subject = schemas.ShardSubject(e.Topic, e.Month, e.ID)
	}
	tally := gone.after[e.ID]
	cut := e.Status != registry.Active && tally.Settles(t.Pos, e.SealedAt) // or has no frame
	switch {
	case !has && st.Rows == 0 && e.Status == registry.Active:
		return s, nil // made, and nothing came yet
	case !has && !cut:
		s.problem("%s holds no frame of it, not even the last; ClickHouse has %d rows up to position %d", schemas.StreamShards, st.Rows, st.Head)
		s.Routed, s.Expected = st.Rows, st.Rows
		return s, nil
	}
	s.Routed, s.Tail = t.ShardRows, t.Pos
	if e.Status != registry.Active && e.SealedAt != t.Pos && !cut {
		s.problem("sealed at position %d, its last frame has %d", e.SealedAt, t.Pos)
	}
	// The entry was read after the rows were counted: it may have closed meanwhile.
	if e.Status == registry.Closed && st.Head >= e.SealedAt && e.Rows != st.Rows && gone.settled(e.ID) {
		s.problem("closed with %d rows, ClickHouse has %d", e.Rows, st.Rows)
	}
	switch {
	case cut:
		s.cut(e, st, gone)
	case s.Head > t.Pos:
		s.problem("ClickHouse has position %d, the last frame is %d: %s lost its end", s.Head, t.Pos, schemas.StreamShards)
		s.Expected = t.ShardRows
	case s.Head > 0:
		if err := r.compareHead(ctx, topic, s, e, t, gone.ledger); err != nil {
			return nil, err
		}
	}
	if err := r.belowProven(ctx, s, e, t, h); err != nil {
		return nil, err
	}
	gone.take(s, e.ID)
	if s.missing()+s.doubled() > 0 || s.Distinct < s.Stored {
		return s, r.explain(ctx, s, e, t, gone.after[e.ID])
	}
	return s, nil
}

// compareHead reads the frame at the head: how many rows there must be up to it,
// and whether it is the frame that is stored there.
func (r *Reader) compareHead(ctx context.Context, topic *schemas.Topic, s *ShardReport, e registry.Shard, t tail, ledger *registry.Ledger) error {
	at, err := registry.FindFrame(ctx, r.shards, t.subject, s.Head, t.seq)
	if err != nil {
		return err
	}
	msg, err := r.shards.GetMsg(ctx, at, jetstream.WithGetMsgSubject(t.subject))
	if err != nil {
		return fmt.Errorf("query: position %d of %s: %w", s.Head, s.Name, err)
	}
	p, err := schemas.ParsePlaced(msg.Header)
	if err != nil {
		return fmt.Errorf("query: %s message %d: %w", t.subject, msg.Sequence, err)
	}
	if s.Expected = p.ShardRows; p.Pos != s.Head {
		s.problem("positions %d to %d are missing in %s", s.Head, p.Pos-1, schemas.StreamShards)
		s.Expected = p.ShardRows - uint64(p.Rows)
		return nil
	}
	if e.Floor >= s.Head || p.Cleared != "" {
		return nil // its rows are gone on purpose, or the frame's events are
	}
	same, err := r.db.HasFrame(ctx, topic, e.Month, e.ID, p, msg.Data)
	if err != nil || same {
		return err
	}
	// All of it may have been erased; were any of it to stay, it would be there.
	left := uint64(p.Rows)
	if cover := ledger.Covering(p.SourceSeq, p.MinTs, p.MaxTs); len(cover) > 0 {
		if cover.Schema() > topic.Version {
			return nil // entered since, with a newer schema: the next look tells
		}
		keep, params := cover.Keep()
		if left, err = r.db.CountFrame(ctx, topic, p, msg.Data, tables.Condition{SQL: keep, Params: params}); err != nil {
			return err
		}
	}
	if left > 0 {
		s.problem("position %d in %s is not the frame that is stored there: one of the two was rolled back", s.Head, schemas.StreamShards)
	}
	return err
}

// doubled is rows beyond the frames'.
func (s *ShardReport) doubled() uint64 { return s.Stored - min(s.Stored, s.Expected) + s.standIn }

// missing is rows the frames brought that are not there. Rows that share an id
// count once each: a client that makes its own ids and repeats one has two events.
func (s *ShardReport) missing() uint64 {
	return s.Expected - min(s.Expected, s.Stored+s.Dropped) + s.standIn
}

// explain names the positions whose rows differ from their frames'.
func (r *Reader) explain(ctx context.Context, s *ShardReport, e registry.Shard, t tail, tally registry.Tally) error {
	cumulative := map[uint64]uint64{0: 0} // position: rows up to it
	first := uint64(0)
	err := r.headers(ctx, t.subject, jetstream.DeliverAllPolicy, func(msg jetstream.Msg, seq uint64) error {
		p, err := schemas.ParsePlaced(msg.Headers())
		if err != nil {
			return fmt.Errorf("query: %s message %d: %w", t.subject, seq, err)
		}
		if first == 0 {
			first = p.Pos
			cumulative[p.Pos-1] = p.ShardRows - uint64(p.Rows)
		}
		cumulative[p.Pos] = p.ShardRows
		return nil
	})
	if err != nil {
		return err
	}
	groups, err := r.db.Groups(ctx, e.Topic, e.Month, e.ID)
	if err != nil {
		return err
	}
	last := uint64(0)
	for _, g := range groups {
		pos, n, distinct := g.Pos, g.Rows, g.Distinct
		before, okBefore := cumulative[last]
		upTo, ok := cumulative[pos]
		erased := registry.SumCuts(tally.Gone, pos) - registry.SumCuts(tally.Gone, last)
		switch want := upTo - before - min(upTo-before, erased); {
		case !ok || !okBefore: // purged: only the totals can be compared
		case n != want:
			s.problem("positions %d to %d brought %d rows, ClickHouse has %d with %d ids", last+1, pos, want, n, distinct)
		case distinct < n && erased == 0:
			if err := r.standIns(ctx, s, e, t, last, pos, distinct); err != nil {
				return err
			}
		}
		last = pos
	}
	if len(s.Problems) == 0 && s.missing()+s.doubled() > 0 {
		s.problem("%d rows up to position %d were routed, %d were erased, ClickHouse has %d with %d ids", s.Expected+s.Erased, s.Head, s.Erased, s.Stored, s.Distinct)
	}
	if s.doubled() > 0 && s.Erased > 0 {
		s.problem("if ClickHouse was put back to an older copy, rows that were erased came back with it: run `almanac erase resume`")
	}
	return nil
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

// waiting counts a topic's events above the checkpoints and up to a sequence, by
// their headers. lanes is how many checkpoints there are when every lane has been
// routed; with fewer the stream is read from its beginning.
func (r *Reader) waiting(ctx context.Context, topic string, lanes int, routed map[string]schemas.Checkpoint, upTo uint64) (uint64, error) {
	from := uint64(math.MaxUint64)
	for _, cp := range routed {
		from = min(from, cp.Source)
	}
	if len(routed) < lanes {
		from = 0
	}
	var n uint64
	err := scanHeaders(ctx, r.events, schemas.TopicFilter(topic), jetstream.DeliverByStartSequencePolicy, max(from, 1), func(msg jetstream.Msg, seq uint64) error {
		_, _, lane, err := schemas.EventsTokens(msg.Subject())
		if err != nil || seq <= routed[lane].Source || seq > upTo || schemas.IsBlank(msg.Headers(), nil) {
			return nil
		}
		n += uint64(eventsOf(msg.Headers().Get(schemas.HeaderRows)))
		return nil
	})
	return n, err
}

// verifyStrays accounts for messages under topics nobody declared: those kept as
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
	err := registry.LastMessages(ctx, r.js, schemas.StreamShards, schemas.SubjectsRouted, func(msg *jetstream.RawStreamMsg) error {
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
	info, err := r.events.Info(ctx, jetstream.WithSubjectFilter(schemas.SubjectsEvents))
	if err != nil {
		return fmt.Errorf("query: %s: %w", schemas.StreamEvents, err)
	}
	for subject, n := range info.State.Subjects {
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
