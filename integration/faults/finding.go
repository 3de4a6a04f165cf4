package faults

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is what the Checker found.
type Finding struct {
	// Told is the events producers were told are stored; Found those of the numbered rows in ClickHouse; Unknown those of
	// them that were never reported.
	Told, Found, Unknown int
	// Lost were told stored and are not there. Twice are there more than once. Invented were never written.
	Lost, Twice, Invented []uint64
	// GivenUp is the events producers were told they gave up.
	GivenUp int
	// Shards and Frames were compared position by position.
	Shards, Frames int
	// Purged is the frames SHARDS no longer has; their rows were compared all together.
	Purged int
	// Dead is the dead letters, Damaged the messages that had to become some, Echoed those that came again too late.
	Dead, Damaged, Echoed int
	// Problems say what else is wrong.
	Problems []string
}

func (v *Finding) problem(format string, a ...any) {
	v.Problems = append(v.Problems, fmt.Sprintf(format, a...))
}

// OK says whether the promise was kept.
func (v *Finding) OK() bool {
	return len(v.Lost) == 0 && len(v.Twice) == 0 && len(v.Invented) == 0 && len(v.Problems) == 0
}

// String is one line, and one for each thing that is wrong.
func (v *Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d events told stored, %d lost, %d twice; %d found, %d of unknown outcome, %d given up; %d shards, %d frames; "+
		"%d dead letters for %d damaged messages and %d late echoes",
		v.Told, len(v.Lost), len(v.Twice), v.Found, v.Unknown, v.GivenUp, v.Shards, v.Frames, v.Dead, v.Damaged, v.Echoed)
	for what, numbers := range map[string][]uint64{"lost": v.Lost, "twice": v.Twice, "never written": v.Invented} {
		if len(numbers) > 0 {
			fmt.Fprintf(&b, "\n  %s: %s", what, ranges(numbers))
		}
	}
	for i, p := range v.Problems {
		if i == 20 {
			fmt.Fprintf(&b, "\n  … and %d problems more", len(v.Problems)-i)
			break
		}
		b.WriteString("\n  " + p)
	}
	return b.String()
}

// ranges writes numbers as producer/number, adjoining ones together, cut where it gets long.
func ranges(numbers []uint64) string {
	slices.Sort(numbers)
	var out []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		text := fmt.Sprintf("%d/%d", numbers[i]>>32, numbers[i]&(1<<32-1))
		if j > i {
			text += fmt.Sprintf("-%d", numbers[j]&(1<<32-1))
		}
		out = append(out, text)
		if i = j + 1; len(out) == 20 && i < len(numbers) {
			out = append(out, fmt.Sprintf("… %d in all", len(numbers)))
			break
		}
	}
	return strings.Join(out, ", ")
}
