package bench

import (
	"fmt"
	"math"
)

// Figure is one thing that was measured, and the bar it is held to.
type Figure struct {
	Name  string  `json:"name"` // stable: what --only and recorded.json go by
	What  string  `json:"what"` // for people
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Bar is what Value must be at least, or at most when Below.
	Bar   float64 `json:"bar"`
	Below bool    `json:"below"`
	Pass  bool    `json:"pass"`
	// Ratio is Value against its reference in the same run: Value itself where it
	// is such a ratio, otherwise Value / Bar.
	Ratio float64 `json:"ratio"`
	// How it was measured, with the numbers behind it.
	How string `json:"how"`
	// Raw are those numbers for programs.
	Raw map[string]float64 `json:"raw,omitempty"`
	// Grid is how it grows; of several figures of one run the last one has it.
	Grid *Grid `json:"grid,omitempty"`
}

// Grid is a table of costs by size.
type Grid struct {
	Head []string   `json:"head"`
	Rows [][]string `json:"rows"`
}

// againstItsBar fills Pass and Ratio. A value that is not a number passes nothing.
func (f Figure) againstItsBar() Figure {
	f.Pass = f.Value >= f.Bar
	if f.Below {
		f.Pass = f.Value <= f.Bar
	}
	if math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
		f.Value, f.Pass = -1, false // JSON has no other number for it
	}
	switch {
	case f.Unit == unitRatio:
		f.Ratio = f.Value
	case f.Bar != 0:
		f.Ratio = f.Value / f.Bar
	}
	return f
}

// Units.
const (
	unitRatio  = "×"
	unitMicros = "µs"
	unitMillis = "ms"
	unitSecond = "s"
	unitMiB    = "MiB"
	unitRate   = "events/s"
	unitCount  = "allocations"
	unitCPU    = "% of a core"
)

// atLeast and atMost are figures with either kind of bar.
func atLeast(name, what string, value float64, unit string, bar float64, how string, args ...any) Figure {
	return Figure{Name: name, What: what, Value: value, Unit: unit, Bar: bar, How: fmt.Sprintf(how, args...)}.againstItsBar()
}

func atMost(name, what string, value float64, unit string, bar float64, how string, args ...any) Figure {
	return Figure{Name: name, What: what, Value: value, Unit: unit, Bar: bar, Below: true, How: fmt.Sprintf(how, args...)}.againstItsBar()
}

// raw adds numbers, given as name, value, name, value.
func (f Figure) raw(pairs ...any) Figure {
	f.Raw = map[string]float64{}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Raw[pairs[i].(string)] = pairs[i+1].(float64)
	}
	return f
}

// Measured is the value with its unit, Bound the bar likewise, for tables.
func (f *Figure) Measured() string { return withUnit(f.Value, f.Unit) }

// Bound is the bar, with ≥ or ≤.
func (f *Figure) Bound() string {
	if f.Below {
		return "≤ " + withUnit(f.Bar, f.Unit)
	}
	return "≥ " + withUnit(f.Bar, f.Unit)
}

func withUnit(v float64, unit string) string {
	switch {
	case unit == unitRatio:
		return fmt.Sprintf("%.2f ×", v)
	case v >= 1e6:
		return fmt.Sprintf("%.2f M %s", v/1e6, unit)
	case v >= 1e4:
		return fmt.Sprintf("%.0f k %s", v/1e3, unit)
	case v >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}
