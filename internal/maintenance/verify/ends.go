package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// ends are the losses of the end of EVENTS that the registry remembers, and one that the
// janitor has not noted yet.
func (v *Verifier) ends(ctx context.Context) (cuts []checkpoint.Cut, err error) {
	end, _, err := v.reg.End(ctx, schemas.StreamEvents)
	if errors.Is(err, registry.ErrUnreadable) {
		v.odd(err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	cut, why, err := v.reg.EndCut(ctx, end)
	if err != nil {
		return nil, fmt.Errorf("verify: end of %s: %w", schemas.StreamEvents, err)
	}
	if why == "" {
		return end.Cuts, nil
	}
	if cut.Messages == 0 { // all of them were routed
		return end.Cuts, nil
	}
	return append(slices.Clone(end.Cuts), cut), nil
}

// forgotten names the lanes whose checkpoint is older than its copy in the registry, where
// EVENTS does not hold what would be routed again: both streams lost their ends, or EVENTS let go of it.
func (v *Verifier) forgotten(ctx context.Context, t *schemas.Topic, routed map[string]checkpoint.Checkpoint) (problems []string, err error) {
	copies, err := v.reg.Copies(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	for lane, known := range copies {
		cp := routed[lane]
		if !cp.Forgets(&known) {
			continue
		}
		why, err := streams.Misfit(ctx, v.js, known.LaneFilter(t, lane), &known)
		if err == nil && why == "" {
			why, err = streams.LetGo(ctx, v.js, known.LaneFilter(t, lane), &cp, &known)
		}
		if err != nil {
			return nil, err
		}
		if why != "" {
			problems = append(problems, fmt.Sprintf("%s: %s; the lane's router waits for `almanac repair %s`", schemas.RoutedSubject(t.Name, lane), cp.BothLost(&known, why), t.Name))
		}
	}
	slices.Sort(problems)
	return problems, nil
}

// verifyLost names the frames that both streams lost before they were stored.
func verifyLost(topic string, routed map[string]checkpoint.Checkpoint) (problems []string, rows uint64) {
	for _, cp := range routed {
		for _, l := range cp.Lost {
			rows += l.Rows
			problems = append(problems, fmt.Sprintf("%s: positions %d to %d, %d events, are lost: %s and %s lost these frames before they were stored; found %s",
				schemas.PublicShardName(topic, l.Month, l.Shard), l.From, l.To, l.Rows, schemas.StreamEvents, schemas.StreamShards, stamp(l.Found)))
		}
	}
	slices.Sort(problems)
	return problems, rows
}
