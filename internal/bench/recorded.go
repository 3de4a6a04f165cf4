package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Report is a whole run: what results.json and recorded.json hold.
type Report struct {
	Machine Machine `json:"machine"`
	Size    Size    `json:"size"`
	Seconds float64 `json:"seconds"` // the run took
	// OtherCores is how many cores other work kept busy meanwhile; see Others.
	OtherCores float64  `json:"other_cores"`
	Figures    []Figure `json:"figures"`
}

// Merged is old with the figures of now in the place of those of their names, or
// after them: the report of a run that measured only some. Reports of another
// machine or size have nothing in common, and now stands alone.
func Merged(old, now Report) Report {
	if !old.Machine.Same(now.Machine) || old.Size != now.Size {
		return now
	}
	out := now
	out.Figures = slices.Clone(old.Figures)
	out.Seconds += old.Seconds
	out.OtherCores = max(old.OtherCores, now.OtherCores)
	for _, f := range now.Figures {
		if i := slices.IndexFunc(out.Figures, func(o Figure) bool { return o.Name == f.Name }); i >= 0 {
			out.Figures[i] = f
		} else {
			out.Figures = append(out.Figures, f)
		}
	}
	return out
}

// MaxFall is how far a ratio may fall under the recorded one: more than runs of
// one program on a quiet machine differ.
const MaxFall = 0.2

// Fall is a ratio that got worse than MaxFall allows.
type Fall struct {
	Name               string
	Now, Recorded, Bar float64 // Bar is the worst that would have passed
}

// Error says it in words.
func (f Fall) Error() string {
	return fmt.Sprintf("%s is %.3f, recorded was %.3f: it must not be worse than %.3f", f.Name, f.Now, f.Recorded, f.Bar)
}

// Falls compares the ratios of a run with those recorded. A figure that was not
// recorded is not compared; one that was recorded and is missing, or was measured
// as no number, has fallen.
func Falls(now, recorded []Figure) []Fall {
	have := map[string]Figure{}
	for _, f := range now {
		have[f.Name] = f
	}
	var falls []Fall
	for _, old := range recorded {
		f, ok := have[old.Name]
		fall := Fall{Name: old.Name, Now: f.Ratio, Recorded: old.Ratio, Bar: old.Ratio * (1 - MaxFall)}
		worse := f.Ratio < fall.Bar
		if old.Below { // a smaller ratio is a better one
			fall.Bar = old.Ratio * (1 + MaxFall)
			worse = f.Ratio > fall.Bar
		}
		if !ok || worse || f.Value < 0 {
			falls = append(falls, fall)
		}
	}
	return falls
}

// CheckNames are the measures whose ratios `make bench-check` compares: those of
// the whole way and of Log, in a minute or two.
func CheckNames() []string { return []string{"end-to-end", "log", "disk"} }

// ErrNoReport is a file that holds no report.
var ErrNoReport = errors.New("not a report of the bench")

// ReadReport reads a report's file.
func ReadReport(path string) (Report, error) {
	var r Report
	text, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("recorded figures: %w; write them with make bench-record", err)
	}
	if err := json.Unmarshal(text, &r); err != nil || len(r.Figures) == 0 {
		return r, fmt.Errorf("%w: %s; write one with make bench-record", ErrNoReport, path)
	}
	return r, nil
}

// WriteReport writes a report's file.
func WriteReport(path string, r Report) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
