package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/declare"
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

// tellSooner says what goes sooner when a topic is declared as planned.
func (a *app) tellSooner(p *declare.Plan) {
	a.note("topic %s: %s, it was %s", p.Topic, kept(p.Now), kept(*p.Was))
	told := map[registry.Step]int{}
	for _, s := range p.Sooner {
		if told[s.Step]++; told[s.Step] <= maxPlannedLines {
			a.note("  %s", plannedLine(s))
		}
	}
	for _, l := range p.Loss {
		if l.Shards > maxPlannedLines {
			a.note("  and %d more to %s", l.Shards-maxPlannedLines, l.Step)
		}
	}
}
