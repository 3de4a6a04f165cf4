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

// lostLane is a lane whose checkpoint has to be written anew.
type lostLane struct {
	token string
	have  checkpoint // that is there
	fits  bool       // EVENTS is what it saw: up to there, what it says stands
	cp    schemas.Checkpoint
	// behind are shards of which ClickHouse has more than SHARDS: routers may not go
	// on with them, because their next positions were given already.
	behind []streams.ShardRef
	// cut are shards that end early in SHARDS, those among them: what became of the
	// frames behind is settled by the new checkpoint.
	cut []streams.ShardRef
}

// planLanes adds the lanes whose checkpoint is gone, or does not fit EVENTS.
func (r *Repairer) planLanes(ctx context.Context, t *found, p *Plan) error {
	used := map[int]bool{}
	last := map[int]uint64{} // sequence in EVENTS of the last frame
	cut := map[int]string{}  // a shard that lacks its end
	for _, ref := range t.refs() {
		lane := t.lane[ref.ID]
		used[lane] = true
		if c := t.chains[ref.ID]; len(c) > 0 {
			last[lane] = max(last[lane], c.last().source)
		}
		if e := t.entries[ref.ID]; t.unsettled(ref.ID) {
			cut[lane] = fmt.Sprintf("%s was left at position %d and ends at %d in %s", ref, e.Until(), t.tail(ref.ID), schemas.StreamShards)
		}
	}
	for n := range t.topic.Lanes {
		token := strconv.Itoa(n)
		have, ok := t.lanes[token]
		if !ok && !used[n] {
			continue // never routed
		}
		why, fits := "its checkpoint is gone", false
		if ok {
			var err error
			if why, err = r.unfit(ctx, have.Checkpoint); err != nil {
				return err
			}
			fits = why == ""
			if fits && last[n] > have.Source {
				why = fmt.Sprintf("frames came from up to message %d of %s, the checkpoint stands at %d: %s lost its end inside a batch",
					last[n], schemas.StreamEvents, have.Source, schemas.StreamShards)
			}
			if why = cmp.Or(why, cut[n]); why == "" {
				continue
			}
		}
		l := &lostLane{token: token, have: have, fits: ok && fits}
		if err := r.rebuild(ctx, t, n, l, p); err != nil {
			return err
		}
		p.add(Action{Do: RestoreCheckpoint, Topic: t.topic.Name, Where: schemas.RoutedSubject(t.topic.Name, token), Rows: l.cp.Rows, Source: "SHARDS, EVENTS, ClickHouse",
			Detail: fmt.Sprintf("%s; the router goes on behind message %d of %s, and knows what it routed of %d producers", why, l.cp.Source, schemas.StreamEvents, len(l.cp.Windows)),
			topic:  &t.topic, lane: l})
	}
	return nil
}

// unfit says why EVENTS is not what a checkpoint saw, or "".
func (r *Repairer) unfit(ctx context.Context, cp schemas.Checkpoint) (string, error) {
	if cp.Source == 0 {
		return "", nil
	}
	info, err := r.events.Info(ctx)
	if err != nil {
		return "", fmt.Errorf("repair: %s: %w", schemas.StreamEvents, err)
	}
	if info.State.LastSeq < cp.Source {
		return fmt.Sprintf("%s ends at message %d, the checkpoint stands at %d", schemas.StreamEvents, info.State.LastSeq, cp.Source), nil
	}
	if cp.Digest == "" {
		return "", nil
	}
	msg, err := r.events.GetMsg(ctx, cp.Source)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return fmt.Sprintf("message %d of %s, where the checkpoint stands, is gone", cp.Source, schemas.StreamEvents), nil
	case err != nil:
		return "", fmt.Errorf("repair: message %d of %s: %w", cp.Source, schemas.StreamEvents, err)
	case schemas.SourceDigest(msg.Data) != cp.Digest:
		return fmt.Sprintf("message %d of %s is not the one the checkpoint saw", cp.Source, schemas.StreamEvents), nil
	}
	return "", nil
}

// rebuild makes a lane's checkpoint anew. Where the lane stands is said by what
// came out of it: the frames of its shards and its dead letters. The windows are
// filled from the frames, so that what is routed again is known as repeated, and
// from ClickHouse where SHARDS lost its end. A checkpoint that is there and fits
// EVENTS is gone on from, and never behind: it was read after the frames, and knows
// producers whose frames were purged.
func (r *Repairer) rebuild(ctx context.Context, t *found, n int, l *lostLane, p *Plan) error {
	cp, have := &l.cp, l.have
	*cp = have.Checkpoint
	if have.seq == 0 {
		p.note("%s: how many repeated frames it refused, and dead letters that were dropped, is no longer known", schemas.RoutedSubject(t.topic.Name, l.token))
	}
	cp.Windows, cp.Frames, cp.Rows, cp.Dead, cp.Source = nil, 0, 0, 0, 0
	routed := uint64(0) // up to there all is known
	if l.fits {
		cp.Windows, cp.Dead, cp.Source, routed = slices.Clone(have.Windows), have.Dead, have.Source, have.Source
	}
	for _, ref := range t.refs() {
		c := t.chains[ref.ID]
		if t.lane[ref.ID] != n {
			continue
		}
		if len(c) > 0 {
			cp.Source = max(cp.Source, c.last().source)
			cp.Rows += max(t.routed[ref.ID], c.last().shardRows)
		} else {
			cp.Rows += t.routed[ref.ID]
		}
		cp.Frames += t.end(ref.ID)
		behind := t.counts[ref.ID].Head > t.tail(ref.ID)
		if behind {
			l.behind = append(l.behind, ref)
		}
		if behind || t.unsettled(ref.ID) {
			l.cut = append(l.cut, ref)
		}
	}
	_, err := streams.Frames(ctx, r.shards, schemas.ShardsFilter(t.topic.Name), func(ref streams.ShardRef, pl schemas.Placed, _ uint64, _ time.Time) error {
		if t.lane[ref.ID] == n && pl.SourceSeq > routed && schemas.Windows(cp.Windows).Judge(pl.Frame) == schemas.Fresh {
			cp.Windows = schemas.Windows(cp.Windows).Take(pl.Frame, pl.SourceSeq)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if l.fits {
		cp.Frames, cp.Rows = max(cp.Frames, have.Frames), max(cp.Rows, have.Rows)
	}
	slices.SortFunc(l.cut, func(a, b streams.ShardRef) int { // a router asks for the youngest
		return t.entries[a.ID].CreatedAt.Compare(t.entries[b.ID].CreatedAt)
	})
	if err := r.countDead(ctx, t.topic.Name, routed, l); err != nil {
		return err
	}
	info, err := r.events.Info(ctx)
	if err != nil {
		return fmt.Errorf("repair: %s: %w", schemas.StreamEvents, err)
	}
	if have.seq > 0 && info.State.LastSeq < have.Source {
		// EVENTS lost its end and gives its numbers again.
		p.note("%s: messages %d to %d of %s were lost with its end; those of this lane that were not routed are gone unless their producers send them again",
			schemas.RoutedSubject(t.topic.Name, l.token), info.State.LastSeq+1, have.Source, schemas.StreamEvents)
	}
	cp.Source = min(cp.Source, info.State.LastSeq)
	if err := r.passStored(ctx, t, n, l); err != nil {
		return err
	}
	cp.Digest = ""
	if msg, err := r.events.GetMsg(ctx, cp.Source); err == nil {
		if _, _, token, err := schemas.EventsTokens(msg.Subject); err == nil && token == l.token && strings.HasPrefix(msg.Subject, schemas.EventsPrefix(t.topic.Name)) {
			cp.Digest = schemas.SourceDigest(msg.Data)
		}
	} else if !errors.Is(err, jetstream.ErrMsgNotFound) && cp.Source > 0 {
		return fmt.Errorf("repair: message %d of %s: %w", cp.Source, schemas.StreamEvents, err)
	}
	return nil
}

// countDead adds the dead letters of a lane from behind message routed of EVENTS
// that are still kept.
func (r *Repairer) countDead(ctx context.Context, topic string, routed uint64, l *lostLane) error {
	_, err := streams.Headers(ctx, r.shards, schemas.DeadSubject(topic), jetstream.DeliverAllPolicy, 0, func(msg jetstream.Msg, _ uint64) error {
		h := msg.Headers()
		if _, _, token, err := schemas.EventsTokens(h.Get(schemas.HeaderSourceSubject)); err != nil || token != l.token {
			return nil
		}
		source, err := strconv.ParseUint(h.Get(schemas.HeaderSourceSeq), 10, 64)
		if err != nil || source <= routed {
			return nil
		}
		rows, err := strconv.ParseUint(h.Get(schemas.HeaderRows), 10, 64)
		if err != nil {
			rows = 1
		}
		l.cp.Dead, l.cp.Source = l.cp.Dead+rows, max(l.cp.Source, source)
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
	in := map[schemas.Month][]streams.ShardRef{}
	for _, ref := range l.behind {
		in[ref.Month] = append(in[ref.Month], ref)
	}
	follows := true
	return streams.Read(ctx, r.js, schemas.StreamEvents, schemas.LaneFilter(t.topic.Name, l.token), l.cp.Source+1, nil, func(msg *jetstream.RawStreamMsg) (bool, error) {
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
