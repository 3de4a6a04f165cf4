package bench

import (
	"fmt"
	"strings"
)

// Markdown is the report as a section of a README.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. Size %s; the runs took %.0f s%s.\n\n", r.Machine, r.Size, r.Seconds, busyNote(r.OtherCores))
	b.WriteString("| figure | measured | bar | | how |\n|---|---|---|---|---|\n")
	for _, f := range r.Figures {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", f.What, f.Measured(), f.Bound(), f.Result(), strings.ReplaceAll(f.How, "|", "\\|"))
	}
	for _, f := range r.Figures {
		if f.Grid == nil {
			continue
		}
		fmt.Fprintf(&b, "\n| %s |\n|%s\n", strings.Join(f.Grid.Head, " | "), strings.Repeat("---|", len(f.Grid.Head)))
		for _, row := range f.Grid.Rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
	}
	return b.String()
}

// quietCores is what a machine does that does nothing else.
const quietCores = 0.1

// busyNote says in words what else the machine did.
func busyNote(cores float64) string {
	if cores <= quietCores {
		return ", with nothing else running"
	}
	return fmt.Sprintf(", **while other work kept %.1f cores busy**: trust ratios more than rates and times", cores)
}

// Result is the outcome in one word.
func (f *Figure) Result() string {
	if f.Pass {
		return "ok"
	}
	return "**missed**"
}
