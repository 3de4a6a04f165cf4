package schemas

import "github.com/almanac-events/almanac/schemas/kinds"

// Names of derived tables, after a topic's and a dot, which no topic has in its name.
const (
	DerivedRepeats = "repeats" // of events that came before: rows that must not count
	DerivedSums    = "sums"    // of a meter's diffs, by space and customer
	DerivedSeries  = "series"  // of a metric's points: labels, first and last time
)

// DerivedTable is the name of a table that is filled from a topic's.
func DerivedTable(topic, name string) string { return topic + "." + name }

// HasOnce reports whether two events of the topic may be the same one, so that one counts.
func (t *Topic) HasOnce() bool { return len(t.Once()) > 0 }

// HasSums reports whether the topic's diffs are summed in a table of their own.
func (t *Topic) HasSums() bool { return t.Kind == kinds.Meter }

// HasSeries reports whether the topic's series are listed in a table of their own.
func (t *Topic) HasSeries() bool { return t.Kind == kinds.Metric }

// DerivedTables are the names of the tables that are filled from the topic's, in the order
// in which they are filled.
func (t *Topic) DerivedTables() []string {
	var out []string
	if t.HasOnce() {
		out = append(out, DerivedRepeats)
	}
	if t.HasSums() {
		out = append(out, DerivedSums)
	}
	if t.HasSeries() {
		out = append(out, DerivedSeries)
	}
	return out
}
