package repair

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// lostLane is a lane whose checkpoint has to be written again.
type lostLane struct {
	token string
	have  streams.Routed // that is there
	cp    checkpoint.Checkpoint
	// behind are shards that end above what SHARDS holds of them: routers may not go on
	// with them, because their next positions were given already.
	behind []schemas.ShardRef
	// cut are shards that end early in SHARDS, those among them: what became of the
	// frames behind is settled by the new checkpoint.
	cut []schemas.ShardRef
	// heads are up to where ClickHouse had the lane's shards as this was planned.
	heads map[schemas.ShardRef]uint64
	// known is how far the lane had been routed, where EVENTS is not what the lane saw: the
	// checkpoint that is there, or the registry's copy where SHARDS lost its end too (both).
	// lost are the frames up to there that neither the streams nor ClickHouse have.
	known *checkpoint.Checkpoint
	both  bool
	letGo bool // EVENTS has let go of some of it
	lost  []checkpoint.LostFrames
	held  map[number]bool // the lane's frames in SHARDS, where any are lost
}

// laneState is what the checkpoints say of a lane, and EVENTS of them.
type laneState struct {
	have   streams.Routed
	copied checkpoint.Checkpoint // the registry's copy
	both   string                // why EVENTS is not what the copy saw, which knows more than have, or has let go of some of it
	letGo  bool                  // it has let go of some, and lost nothing
	misfit string                // why EVENTS is not what have saw
}

// known is how far the lane had been routed where EVENTS is not what it saw; else nil.
func (s *laneState) known() *checkpoint.Checkpoint {
	switch {
	case s.both != "":
		return &s.copied
	case s.misfit != "":
		return &s.have.Checkpoint
	}
	return nil
}

// compareLanes compares the checkpoints of a topic's lanes with EVENTS.
func (r *Repairer) compareLanes(ctx context.Context, t *found) error {
	t.state = make([]laneState, t.topic.Lanes)
	for n := range t.state {
		s, token := &t.state[n], strconv.Itoa(n)
		s.have, s.copied = t.lanes[token], t.copies[token]
		filter := schemas.LaneFilter(t.topic.Name, token)
		var err error
		if s.have.Forgets(&s.copied) {
			if s.both, err = streams.Misfit(ctx, r.js, filter, &s.copied); err == nil && s.both == "" {
				s.both, err = streams.LetGo(ctx, r.js, filter, &s.have.Checkpoint, &s.copied)
				s.letGo = s.both != ""
			}
			if err != nil {
				return err
			}
		}
		if s.have.Seq > 0 && s.both == "" {
			if s.misfit, err = streams.Misfit(ctx, r.js, filter, &s.have.Checkpoint); err != nil {
				return err
			}
		}
	}
	return nil
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
	for n := range t.state {
		s := &t.state[n]
		why := "its checkpoint is gone"
		switch {
		case s.both != "":
			why = s.have.BothLost(&s.copied, s.both)
		case s.have.Seq > 0:
			why = s.misfit
			if l := last[n]; why == "" && l != nil && s.have.Behind(l.era, l.source) {
				why = fmt.Sprintf("frames came from up to message %d of %s, the checkpoint is at %d: %s lost its end inside a batch",
					l.source, schemas.StreamEvents, s.have.Source, schemas.StreamShards)
			}
			if why = cmp.Or(why, cut[n]); why == "" {
				continue
			}
		case !used[n]:
			continue // never routed
		}
		if a := p.recovers(t, n); a != nil {
			p.note("%s: %s; that is planned once %s has positions %s, which decides what is routed again",
				schemas.RoutedSubject(t.topic.Name, strconv.Itoa(n)), why, a.Where, a.Positions())
			continue
		}
		l := &lostLane{token: strconv.Itoa(n), have: s.have, known: s.known(), both: s.both != "", letGo: s.letGo}
		if err := r.rebuild(ctx, t, n, l, p); err != nil {
			return err
		}
		p.add(Action{Do: RestoreCheckpoint, Topic: t.topic.Name, Where: schemas.RoutedSubject(t.topic.Name, l.token), Rows: l.cp.Rows, Source: "SHARDS, EVENTS, ClickHouse",
			Detail: fmt.Sprintf("%s; the router goes on after message %d of %s, and knows what it routed of %d producers", why, l.cp.Source, schemas.StreamEvents, len(l.cp.Windows)),
			topic:  &t.topic, lane: l})
	}
	return nil
}

// recovers is an action that stores frames of a lane from EVENTS, which the lane would
// route again were its checkpoint written before. One that only a sink can do holds no
// lane up.
func (p *Plan) recovers(t *found, lane int) *Action {
	for i := range p.Actions {
		a := &p.Actions[i]
		if a.Do == Store && a.Topic == t.topic.Name && t.lane[a.ref.ID] == lane && len(coverOf(a.frames, t.ledger)) == 0 &&
			slices.ContainsFunc(a.frames, func(l link) bool { return l.seq == 0 }) {
			return a
		}
	}
	return nil
}

// behind reports whether a frame came from behind another of its lane.
func (l *link) behind(other *link) bool {
	return cmp.Or(cmp.Compare(l.era, other.era), cmp.Compare(l.source, other.source)) > 0
}
