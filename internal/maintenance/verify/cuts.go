package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// verifyMisfits names them.
func verifyMisfits(topic string, misfits map[string]string) (problems []string) {
	for lane, why := range misfits {
		problems = append(problems, fmt.Sprintf("%s: %s: a stream lost its end, and sequences are given again. The lane's router goes on by itself where it can prove what it routed; if this stays, run `almanac repair %s`",
			schemas.RoutedSubject(topic, lane), why, topic))
	}
	slices.Sort(problems)
	return problems
}

// cuts names what EVENTS lost with its end, as the lanes of all topics know it, and the
// end that the registry remembers: a sequence without a trace may have been any topic's.
// messages is how many it were.
func (v *Verifier) cuts(ctx context.Context) (problems []string, messages uint64, err error) {
	cuts := map[uint64]checkpoint.Cut{} // by the message after which it was cut: the one that knew most
	ends, err := v.ends(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, c := range ends {
		if c.Messages > cuts[c.After].Messages {
			cuts[c.After] = c
		}
	}
	err = streams.EachCheckpoint(ctx, v.js, schemas.SubjectsRouted, func(cp *streams.Routed) error {
		if cp.Err != nil {
			problems = append(problems, fmt.Sprintf("%s: message %d on %s: %s; run `almanac repair`", schemas.StreamShards, cp.Seq, cp.Subject, cp.Err))
			return nil
		}
		for _, c := range cp.Cuts {
			if c.Messages > cuts[c.After].Messages {
				cuts[c.After] = c
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("verify: checkpoints: %w", err)
	}
	for _, c := range cuts {
		messages += c.Messages
		for i, s := range c.Lost {
			text := fmt.Sprintf("%s: messages %d to %d were lost with its end, found %s, and had not been routed: they are gone unless their producers sent them again",
				schemas.StreamEvents, s.From, s.To, stamp(c.Found))
			if i == checkpoint.MaxLost-1 {
				text += fmt.Sprintf("; %d messages up to %d in all", c.Messages, c.To)
			}
			problems = append(problems, text)
		}
	}
	slices.Sort(problems)
	return problems, messages, nil
}

// lostEnd is where a lane's checkpoint has the end of an active shard, when SHARDS
// ends before that: it lost the shard's last frames, and not the checkpoint, which
// came with them. Otherwise the zero Tail.
func (v *Verifier) lostEnd(ctx context.Context, e registry.Shard, t streams.Tail, routed map[string]checkpoint.Checkpoint) (checkpoint.Tail, error) {
	cp := routed[strconv.Itoa(e.ID.Lane())]
	lost := cp.Tails[e.ID]
	if e.Status != registry.Active || lost.Pos <= t.Pos {
		return checkpoint.Tail{}, nil
	}
	// The tails were read before the checkpoints.
	msg, err := streams.DecideLast(ctx, v.js, schemas.StreamShards, e.Ref().Subject())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return lost, nil
	}
	if err != nil {
		return lost, fmt.Errorf("verify: end of %s: %w", e.Name(), err)
	}
	if p, err := schemas.ParsePlaced(msg.Header); err == nil && p.Pos >= lost.Pos {
		return checkpoint.Tail{}, nil
	}
	return lost, nil
}

// shortOf expects of a shard that lost its last frames what the checkpoint knows, and
// names them unless a repair settled them.
func (s *ShardReport) shortOf(t streams.Tail, lost checkpoint.Tail, record *ledger.ErasureRecord) {
	s.Tail, s.Routed, s.Expected = lost.Pos, lost.Rows, lost.Rows
	if s.Head == lost.Pos {
		s.summed, s.ids = true, lost.IDs
	}
	if s.Head < lost.Pos { // how many of them are stored the frames no longer tell
		s.Expected = min(lost.Rows, s.Stored)
	}
	if !record.Stored(t.Pos, lost.Pos) {
		s.problem("positions %d to %d are missing in %s, the last it had", t.Pos+1, lost.Pos, schemas.StreamShards)
	}
}
