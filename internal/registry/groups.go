package registry

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
)

// ErrGroupChange: a timer group exists with another number of slots, which are frozen.
var ErrGroupChange = errors.New("a group's slots are frozen")

// groupEntry is a timer group as its key holds it.
type groupEntry struct{ timer.Group }

func (g *groupEntry) key() string { return schemas.GroupKey(g.Topic, g.Name) }

// TimerGroup reads a group of a topic: ErrNotFound when there is none.
func (r *Registry) TimerGroup(ctx context.Context, topic, name string) (timer.Group, error) {
	if err := schemas.ValidateTimerGroup(name); err != nil {
		return timer.Group{}, err
	}
	var g groupEntry
	_, err := r.get(ctx, schemas.GroupKey(topic, name), &g)
	return g.Group, err
}

// TimerGroups lists the groups of a topic.
func (r *Registry) TimerGroups(ctx context.Context, topic string) ([]timer.Group, error) {
	var out []timer.Group
	entries, err := list[groupEntry](ctx, r, schemas.GroupKeys(topic))
	for _, g := range entries {
		out = append(out, g.Group)
	}
	return out, err
}

// AmendTimerGroup declares a group, or changes it: f is given the one that exists, or one with only a
// name, and changes it. Slots cannot be changed (ErrGroupChange).
func (r *Registry) AmendTimerGroup(ctx context.Context, topic, name string, f func(*timer.Group) error) (timer.Group, Applied, error) {
	if err := schemas.ValidateTimerGroup(name); err != nil {
		return timer.Group{}, "", err
	}
	for {
		var live groupEntry
		rev, err := r.get(ctx, schemas.GroupKey(topic, name), &live)
		did, next := Changed, live
		if errors.Is(err, ErrNotFound) {
			did, next = Created, groupEntry{timer.Group{Topic: topic, Name: name, CreatedAt: time.Now().UTC().Truncate(time.Millisecond)}}
		} else if err != nil {
			return live.Group, "", err
		}
		if err := f(&next.Group); err != nil {
			return live.Group, "", err
		}
		if did == Created && next.Slots == 0 {
			next.Slots = schemas.DefaultTimerSlots
		}
		if did == Changed && next.Slots != live.Slots {
			return live.Group, "", fmt.Errorf("%w: group %q has %d slots, not %d; a timer's key has its slot. Make another group and move the timers: `almanac timers export %s | almanac timers import OTHER`", ErrGroupChange, name, live.Slots, next.Slots, name)
		}
		if err := next.Validate(); err != nil {
			return live.Group, "", err
		}
		if did == Changed && reflect.DeepEqual(next, live) {
			return live.Group, Unchanged, nil
		}
		changes := []*change{{key: next.key(), rev: rev, v: &next}}
		if did == Created {
			with, err := r.withTopics(ctx, []string{topic}, nil) // as it is by now: the name may be another topic's
			if err != nil {
				return next.Group, "", err
			}
			if len(with) > 0 && with[0].v.(*schemas.Topic).Kind != kinds.Timer {
				return next.Group, "", fmt.Errorf("%w: topic %q is of kind %s, groups of timers need one of kind %s", schemas.ErrRequest, topic, with[0].v.(*schemas.Topic).Kind, kinds.Timer)
			}
			changes = append(changes, with...)
		}
		err = r.commit(ctx, changes...)
		if err == nil || !errors.Is(err, ErrConflict) {
			return next.Group, did, err
		}
	}
}
