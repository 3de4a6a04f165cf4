package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// kept is how long a topic's events are kept, and whole.
func kept(t schemas.Topic) string {
	text := "kept forever"
	if t.KeepDays > 0 {
		text = "kept " + counted(t.KeepDays, "day")
	}
	if t.Anonymise.On() {
		text += fmt.Sprintf(", without %s after %d", strings.Join(t.Anonymise.Fields, " "), t.Anonymise.AfterDays)
	}
	return text
}

// outlook is the next thing retention does of each kind; zero: never.
type outlook struct {
	NextDrop      time.Time `json:"next_drop,omitzero"`
	NextAnonymise time.Time `json:"next_anonymise,omitzero"`
}

func lookout(planned []registry.Planned) (o outlook) {
	for _, p := range planned { // earliest first
		switch {
		case p.Step == registry.DropIt && o.NextDrop.IsZero():
			o.NextDrop = p.At
		case p.Step == registry.AnonymiseIt && o.NextAnonymise.IsZero():
			o.NextAnonymise = p.At
		}
	}
	return o
}

// retentionLines tell people what retention is to do.
func retentionLines(t *schemas.Topic, planned []registry.Planned) []string {
	lines := []string{kept(*t)}
	for _, step := range []registry.Step{registry.AnonymiseIt, registry.DropIt} {
		for _, p := range planned {
			if p.Step == step {
				lines = append(lines, "next "+plannedLine(p))
				break
			}
		}
	}
	if t.KeepDays > 0 || t.Anonymise.On() {
		lines = append(lines, "dead letters are kept as they came, until dropped: almanac dead ls "+t.Name)
	}
	return lines
}

func plannedLine(p registry.Planned) string {
	word, about := map[registry.Step]string{registry.DropIt: "drop", registry.AnonymiseIt: "anonymise"}[p.Step], ""
	if p.Status == registry.Active {
		about = ", later if it gets younger ones"
	}
	return fmt.Sprintf("%s %s: %s, %s%s", word, p.At.UTC().Format(time.RFC3339), p.Shard, plannedEvents(p.Rows, p.Status == registry.Closed), about)
}

// plannedEvents counts the events of shards. Unless all are closed it is what the routers last wrote down.
func plannedEvents(n uint64, closed bool) string {
	if closed {
		return counted(n, "event")
	}
	return "about " + counted(n, "event")
}

// maxPlannedLines bounds what is told of a change for each step.
const maxPlannedLines = 10

// tightened says what goes sooner when a topic is declared so, and refuses it
// unless that is agreed to. A topic without shards may be declared freely.
func (a *app) tightened(ctx context.Context, c *session, want schemas.Topic, agreed bool) ([]registry.Planned, error) {
	want, err := want.Declared()
	if err != nil {
		return nil, err
	}
	if short := want.ShortestDays(); short > 0 && c.settings.ReplayWindow > time.Duration(short)*24*time.Hour {
		a.note("topic %s: its events leave the streams after %s, before the replay window of %.3g days ends: replay then reads ClickHouse, and finds what is left there",
			want.Name, plural(short, "day"), c.settings.ReplayWindow.Hours()/24)
	}
	live, err := c.reg.Topic(ctx, want.Name)
	if errors.Is(err, schemas.ErrUnknownTopic) {
		return nil, nil
	}
	if err != nil || !live.Tightens(&want) {
		return nil, err
	}
	shards, err := c.reg.Shards(ctx, want.Name, 0)
	if err != nil || len(shards) == 0 {
		return nil, err
	}
	sooner := registry.Sooner(registry.Plan(&live, shards), registry.Plan(&want, shards))
	a.note("topic %s: %s, it was %s", want.Name, kept(want), kept(live))
	told := map[registry.Step]int{}
	events := map[registry.Step]uint64{}
	closed := map[registry.Step]bool{registry.DropIt: true, registry.AnonymiseIt: true}
	for _, p := range sooner {
		events[p.Step] += p.Rows
		closed[p.Step] = closed[p.Step] && p.Status == registry.Closed
		if told[p.Step]++; told[p.Step] <= maxPlannedLines {
			a.note("  %s", plannedLine(p))
		}
	}
	for step, n := range told {
		if n > maxPlannedLines {
			a.note("  and %d more to %s", n-maxPlannedLines, step)
		}
	}
	if !agreed {
		return nil, usageError{fmt.Errorf("topic %s: %s with %s would be dropped and %s with %s anonymised, now or sooner than they are, and nothing brings that back; say --yes if it is meant, or --dry-run to look",
			want.Name, counted(told[registry.DropIt], "shard"), plannedEvents(events[registry.DropIt], closed[registry.DropIt]),
			counted(told[registry.AnonymiseIt], "shard"), plannedEvents(events[registry.AnonymiseIt], closed[registry.AnonymiseIt]))}
	}
	return sooner, nil
}
