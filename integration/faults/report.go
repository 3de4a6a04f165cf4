package faults

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Report is what a run found, as Markdown.
type Report struct {
	Seed    uint64
	Lasted  time.Duration
	Finding *Finding
	Times   *Times
	// Calmly are the recoveries while the machine's load was at most quietLoad.
	Calmly *Times
	Peaks  map[Role]uint64
	// Outage is the longest time for which events of some lane did not come through to ClickHouse.
	Outage time.Duration
	// Burnt is the burnt tokens sinks met, Resent the frames producers sent again.
	Burnt, Resent uint64
}

// WriteTo writes the tables.
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	all, v := r.Times.All(), r.Finding
	fmt.Fprintf(&b, "%d faults in %s, seed %d.\n\n", len(all), r.Lasted.Round(time.Second), r.Seed)
	row := func(cells ...any) {
		for _, c := range cells {
			fmt.Fprintf(&b, "| %v ", c)
		}
		b.WriteString("|\n")
	}
	row("what", "found")
	row("---", "---:")
	row("events accepted", v.Told)
	row("events lost", len(v.Lost))
	row("events twice", len(v.Twice))
	row("events never written", len(v.Invented))
	row("stored though the producer died before it was told", v.Unknown)
	row("damaged messages, dead letters of them", fmt.Sprintf("%d, %d", v.Damaged, v.Dead-v.Echoed))
	row("other problems", len(v.Problems))
	row("frames, shards", fmt.Sprintf("%d, %d", v.Frames, v.Shards))
	row("frames sent again, burnt tokens met", fmt.Sprintf("%d, %d", r.Resent, r.Burnt))
	row("longest outage of a lane", seconds(r.Outage))
	row("recovery p50, p99, longest", fmt.Sprintf("%s, %s, %s", seconds(quantile(all, 0.5)), seconds(quantile(all, 0.99)), seconds(quantile(all, 1))))
	if r.Calmly != nil {
		calm := r.Calmly.All()
		row(fmt.Sprintf("of these at a load of at most %d", quietLoad), len(calm))
		row("recovery p50, p99, longest of those", fmt.Sprintf("%s, %s, %s", seconds(quantile(calm, 0.5)), seconds(quantile(calm, 0.99)), seconds(quantile(calm, 1))))
	}
	b.WriteString("\nRecovery: from the end of the fault (kill -9: from the kill) until new events of every lane are in ClickHouse.\n\n")
	row("fault", "times", "p50", "p99", "longest")
	row("---", "---:", "---:", "---:", "---:")
	for _, what := range r.Times.Kinds() {
		d := r.Times.Of(what)
		row(what, len(d), seconds(quantile(d, 0.5)), seconds(quantile(d, 0.99)), seconds(quantile(d, 1)))
	}
	b.WriteString("\n")
	row("part", "peak resident memory of one process")
	row("---", "---:")
	roles := slices.Clone(Roles)
	slices.Reverse(roles) // the way of an event
	for _, role := range roles {
		row(role, fmt.Sprintf("%d MiB", r.Peaks[role]>>20))
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
