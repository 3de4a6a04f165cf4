package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// lostLane is a lane whose checkpoint has to be written again.
type lostLane struct {
	token string
	have  streams.Routed // that is there
	fits  bool           // EVENTS is what it saw: up to there, what it says stands
	cp    schemas.Checkpoint
	// behind are shards of which ClickHouse has more than SHARDS: routers may not go
	// on with them, because their next positions were given already.
	behind []schemas.ShardRef
	// cut are shards that end early in SHARDS, those among them: what became of the
	// frames behind is settled by the new checkpoint.
	cut []schemas.ShardRef
	// known is the registry's copy of the checkpoint where both streams lost their ends,
	// and lost what neither they nor ClickHouse have of it; see both.go.
	known *schemas.Checkpoint
	lost  []schemas.LostFrames
}

// planLanes adds the lanes whose checkpoint is gone, or does not fit EVENTS.
func (r *Repairer) planLanes(ctx context.Context, t *found, p *Plan) error {
	used := map[int]bool{}
	last := map[int]*link{} // of the last frame
	cut := map[int]string{} // a shard that lacks its end
	for _, ref := range t.refs() {
		lane := t.lane[ref.ID]
		used[lane] = true
		if c := t.chains[ref.ID]; len(c) > 0 && (last[lane] == nil || c.last().behind(last[lane])) {
			last[lane] = c.last()
		}
		if e := t.entries[ref.ID]; t.unsettled(ref.ID) {
			cut[lane] = fmt.Sprintf("%s was left at position %d and ends at %d in %s", ref, e.Until(), t.tail(ref.ID), schemas.StreamShards)
		}
	}
	for n := range t.topic.Lanes {
		token := strconv.Itoa(n)
		have, ok := t.lanes[token]
		known, both, err := r.bothLost(ctx, t, token)
		if err != nil {
			return err
		}
		if !ok && !used[n] && both == "" {
			continue // never routed
		}
		why, fits := "its checkpoint is gone", false
		if ok && both != "" {
			why = have.BothLost(&known, both)
		} else if ok {
			var err error
			if why, err = streams.Misfit(ctx, r.js, schemas.LaneFilter(t.topic.Name, token), &have.Checkpoint); err != nil {
				return err
			}
			fits = why == ""
			if l := last[n]; fits && l != nil && have.Behind(l.era, l.source) {
				why = fmt.Sprintf("frames came from up to message %d of %s, the checkpoint is at %d: %s lost its end inside a batch",
					l.source, schemas.StreamEvents, have.Source, schemas.StreamShards)
			}
			if why = cmp.Or(why, cut[n]); why == "" {
				continue
			}
		}
		l := &lostLane{token: token, have: have, fits: ok && fits}
		if both != "" {
			l.known = &known
		}
		if err := r.rebuild(ctx, t, n, l, p); err != nil {
			return err
		}
		p.add(Action{Do: RestoreCheckpoint, Topic: t.topic.Name, Where: schemas.RoutedSubject(t.topic.Name, token), Rows: l.cp.Rows, Source: "SHARDS, EVENTS, ClickHouse",
			Detail: fmt.Sprintf("%s; the router goes on behind message %d of %s, and knows what it routed of %d producers", why, l.cp.Source, schemas.StreamEvents, len(l.cp.Windows)),
			topic:  &t.topic, lane: l})
	}
	return nil
}

// behind reports whether a frame came from behind another of its lane.
func (l *link) behind(other *link) bool {
	return cmp.Or(cmp.Compare(l.era, other.era), cmp.Compare(l.source, other.source)) > 0
}

// rebuild makes a lane's checkpoint again. Where the lane is follows from what came
// out of it: the frames of its shards and its dead letters. The windows are filled
// from the frames, so that what is routed again is known as repeated, and from
// ClickHouse where SHARDS lost its end. A checkpoint that is there is gone on from:
// it was read after the frames, and knows producers whose frames were purged. Where
// EVENTS lost its end, the lane goes on where that was (resume).
func (r *Repairer) rebuild(ctx context.Context, t *found, n int, l *lostLane, p *Plan) error {
	cp, have := &l.cp, l.have
	*cp = have.Checkpoint
	if have.Seq == 0 {
		p.note("%s: how many repeated frames it refused, and dead letters that were dropped, is no longer known", schemas.RoutedSubject(t.topic.Name, l.token))
	}
	if k := l.known; k != nil {
		cp.Source, cp.Digest, cp.Stored, cp.At, cp.Era = k.Source, k.Digest, k.Stored, k.At, k.Era
	}
	cp.Windows, cp.Tails = slices.Clone(have.Windows), nil
	cp.Frames, cp.Rows = 0, 0
	for _, ref := range t.refs() {
		c := t.chains[ref.ID]
		if t.lane[ref.ID] != n {
			continue
		}
		if len(c) > 0 {
			if at := c.last(); cp.Behind(at.era, at.source) {
				cp.Source, cp.Era, cp.Stored, cp.At, cp.Digest = at.source, at.era, at.stored, 0, ""
			}
			cp.Rows += max(t.routed[ref.ID], c.last().shardRows)
		} else {
			cp.Rows += t.routed[ref.ID]
		}
		cp.Frames += t.end(ref.ID)
		behind := t.counts[ref.ID].Head > t.tail(ref.ID)
		if l.known != nil {
			if lost, ok := t.lostFrames(ref, l.known.Tails[ref.ID]); ok {
				behind, l.lost = true, append(l.lost, lost)
			}
		}
		if behind {
			l.behind = append(l.behind, ref)
		}
		if behind || t.unsettled(ref.ID) {
			l.cut = append(l.cut, ref)
		}
	}
	_, err := streams.Frames(ctx, r.js, schemas.ShardsFilter(t.topic.Name), func(ref schemas.ShardRef, pl schemas.Placed, _ uint64, _ time.Time) error {
		if t.lane[ref.ID] == n && have.Behind(pl.SourceEra, pl.SourceSeq) && schemas.Windows(cp.Windows).Judge(pl.Frame) == schemas.Fresh {
			cp.Windows = schemas.Windows(cp.Windows).Take(pl.Frame, pl.SourceSeq)
		}
		return nil
	})
	if err != nil {
		return err
	}
	cp.Frames, cp.Rows = max(cp.Frames, have.Frames), max(cp.Rows, have.Rows)
	slices.SortFunc(l.cut, func(a, b schemas.ShardRef) int { // a router asks for the youngest
		return t.entries[a.ID].CreatedAt.Compare(t.entries[b.ID].CreatedAt)
	})
	if err := r.countDead(ctx, t.topic.Name, l); err != nil {
		return err
	}
	if l.known != nil {
		again, err := r.resumeBoth(ctx, t, l, p)
		if err != nil {
			return err
		}
		l.nameLost(t, again, p)
	} else if err := r.resume(ctx, t, l, p); err != nil {
		return err
	}
	before := cp.Source
	if err := r.passStored(ctx, t, n, l); err != nil {
		return err
	}
	if cp.Digest != "" && cp.Source == before || cp.Source == 0 {
		return nil
	}
	cp.Digest, cp.At = "", 0
	msg, err := streams.DecideAt(ctx, r.js, schemas.StreamEvents, cp.Source)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("repair: message %d of %s: %w", cp.Source, schemas.StreamEvents, err)
	}
	if _, _, token, err := schemas.EventsTokens(msg.Subject); err == nil && token == l.token && strings.HasPrefix(msg.Subject, schemas.EventsPrefix(t.topic.Name)) {
		cp.Digest, cp.Stored = schemas.SourceDigest(msg.Data), msg.Time.UnixNano()
	}
	return nil
}

// resume moves a lane's checkpoint to where EVENTS lost its end, if it did, as the
// lane's router would. Messages of which no trace tells whether they were routed were
// when ClickHouse has all of what they give, and are routed otherwise.
func (r *Repairer) resume(ctx context.Context, t *found, l *lostLane, p *Plan) error {
	filter := schemas.LaneFilter(t.topic.Name, l.token)
	why, err := streams.Misfit(ctx, r.js, filter, &l.cp)
	if err != nil || why == "" {
		return err
	}
	res, err := streams.Resume(ctx, r.js, filter, &l.cp)
	if err != nil {
		return err
	}
	if !res.Proven { // SHARDS was restored from an older copy: the lane goes on where its frames say
		l.cp.Digest, l.cp.At = "", 0
		return nil
	}
	after := res.After
	for _, m := range res.Doubt {
		msg, err := streams.DecideAt(ctx, r.js, schemas.StreamEvents, m.Seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("repair: message %d of %s: %w", m.Seq, schemas.StreamEvents, err)
		}
		stored, err := r.isStored(ctx, t, msg)
		if err != nil {
			return err
		}
		if stored { // and so was all before it: a cut leaves a beginning
			after = max(after, m.Seq)
		}
	}
	if err := res.At(ctx, r.js, after); err != nil {
		return err
	}
	l.cp = l.cp.Recut(res.After, res.Digest, res.Stored, res.Cut)
	p.note("%s: %s; the lane goes on behind message %d, %d messages between %d and %d had not been routed and are gone unless their producers send them again",
		schemas.RoutedSubject(t.topic.Name, l.token), why, res.After, res.Cut.Messages, res.Cut.After, res.Cut.To)
	return nil
}

// isStored reports whether ClickHouse has everything that a message of EVENTS gives.
func (r *Repairer) isStored(ctx context.Context, t *found, msg *streams.Message) (bool, error) {
	month, lane, err := schemas.ParseEventsSubject(msg.Subject, &t.topic)
	if err != nil {
		return false, nil
	}
	frames, payloads := r.judge(&t.topic, msg)
	for i, f := range frames {
		has := false
		for id, ref := range t.where {
			if ref.Month != month || t.lane[id] != lane || t.counts[id].Rows == 0 {
				continue
			}
			if has, err = r.db.HasFrame(ctx, &t.topic, month, id, schemas.Placed{Frame: f, Pos: 1}, payloads[i]); err != nil || has {
				break
			}
		}
		if err != nil || !has {
			return false, err
		}
	}
	return len(frames) > 0, nil
}

// countDead adds the dead letters of a lane, from behind the checkpoint that is
// there, that are still kept.
func (r *Repairer) countDead(ctx context.Context, topic string, l *lostLane) error {
	have := &l.have
	_, err := streams.Headers(ctx, r.js, schemas.StreamShards, schemas.DeadSubject(topic), 1, func(msg *streams.Message) error {
		h := msg.Header
		if _, _, token, err := schemas.EventsTokens(h.Get(schemas.HeaderSourceSubject)); err != nil || token != l.token {
			return nil
		}
		source, err := strconv.ParseUint(h.Get(schemas.HeaderSourceSeq), 10, 64)
		if err != nil {
			return nil
		}
		stored, err := strconv.ParseInt(h.Get(schemas.HeaderSourceTime), 10, 64)
		if err != nil {
			stored = 0
		}
		if known := have.Stored != 0 && stored != 0; known && stored <= have.Stored || !known && source <= have.Source {
			return nil
		}
		rows, err := strconv.ParseUint(h.Get(schemas.HeaderRows), 10, 64)
		if err != nil {
			rows = 1
		}
		if l.cp.Dead += rows; source > l.cp.Source {
			l.cp.Source, l.cp.Stored, l.cp.At, l.cp.Digest = source, stored, 0, ""
		}
		return nil
	})
	return err
}

// passStored passes over the messages of EVENTS behind the checkpoint whose
// frames ClickHouse has though SHARDS lost them: they may not be routed again. As
// long as one follows the other the checkpoint moves; those behind the first that
// is not stored are entered in the windows.
func (r *Repairer) passStored(ctx context.Context, t *found, n int, l *lostLane) error {
	if len(l.behind) == 0 {
		return nil
	}
	in := map[schemas.Month][]schemas.ShardRef{}
	for _, ref := range l.behind {
		in[ref.Month] = append(in[ref.Month], ref)
	}
	follows := true
	return streams.Gather(ctx, r.js, schemas.StreamEvents, schemas.LaneFilter(t.topic.Name, l.token), l.cp.Source+1, nil, func(msg *streams.Message) (bool, error) {
		month, _, err := schemas.ParseEventsSubject(msg.Subject, &t.topic)
		if err != nil {
			follows = false
			return true, nil
		}
		frames, payloads := r.judge(&t.topic, msg)
		stored := 0
		for i, f := range frames {
			for _, ref := range in[month] {
				has, err := r.db.HasFrame(ctx, &t.topic, month, ref.ID, schemas.Placed{Frame: f, Pos: t.tail(ref.ID) + 1}, payloads[i])
				if err != nil {
					return false, err
				}
				if has {
					stored++
					if schemas.Windows(l.cp.Windows).Judge(f) == schemas.Fresh {
						l.cp.Windows = schemas.Windows(l.cp.Windows).Take(f, msg.Sequence)
					}
					break
				}
			}
		}
		if follows = follows && stored == len(frames) && stored > 0; follows {
			l.cp.Source = msg.Sequence
		}
		return true, nil
	})
}
