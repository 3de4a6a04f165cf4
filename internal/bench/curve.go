package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/markdown"
)

// Curve is one cost over one size that grows.
type Curve struct {
	Name   string  `json:"name"`   // stable
	Growth string  `json:"growth"` // that measured it: what --only goes by
	What   string  `json:"what"`   // of the cost
	Over   string  `json:"over"`   // the size
	Unit   string  `json:"unit"`
	Points []Point `json:"points"`
	// Factor and Slope are a and b of cost = a · size^b, Order is b in words.
	Factor float64   `json:"factor"`
	Slope  float64   `json:"slope"`
	Order  string    `json:"order"`
	Run    GrowthRun `json:"run"`
}

// GrowthRun is when and how a curve was measured.
type GrowthRun struct {
	Began time.Time `json:"began"` // the same for all curves of a run
	Size  Size      `json:"size"`
	// Seconds is how long the curves of one growth took, OtherCores as Report's.
	Seconds    float64 `json:"seconds"`
	OtherCores float64 `json:"other_cores"`
}

// String is a cell of the table.
func (r GrowthRun) String() string {
	quiet := "nothing else running"
	if r.OtherCores > quietCores {
		quiet = fmt.Sprintf("**%.1f cores busy with other work**", r.OtherCores)
	}
	return fmt.Sprintf("%s UTC, %s, %.0f s, %s", r.Began.Format("2006-01-02 15:04"), r.Size, r.Seconds, quiet)
}

// fitted fills Factor, Slope and Order.
func (c Curve) fitted() Curve {
	c.Factor, c.Slope = Fit(c.Points)
	c.Order = Order(c.Slope)
	if math.IsNaN(c.Slope) {
		c.Factor, c.Slope = 0, 0 // JSON has no NaN; Order says it
	}
	return c
}

// GrowthReport is what growth.json holds: curves of one machine, of one run or of
// several.
type GrowthReport struct {
	Machine Machine `json:"machine"`
	Curves  []Curve `json:"curves"`
}

// With is the report with the curves of now in the place of all that their growth
// measured before, in the table's order. What another machine measured goes.
func (r GrowthReport) With(now GrowthReport) GrowthReport {
	out := GrowthReport{Machine: now.Machine}
	for _, g := range GrowthNames() {
		of := func(c Curve) bool { return c.Growth == g }
		from := now.Curves
		if !slices.ContainsFunc(from, of) && r.Machine.Same(now.Machine) {
			from = r.Curves
		}
		for _, c := range from {
			if of(c) {
				out.Curves = append(out.Curves, c)
			}
		}
	}
	return out
}

// Markdown returns the report as a section of a README.
func (r GrowthReport) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. Points are size: cost.\n\n", r.Machine)
	b.WriteString("| cost | over | measured | order of growth | run |\n|---|---|---|---|---|\n")
	for _, c := range r.Curves {
		points := make([]string, len(c.Points))
		for i, p := range c.Points {
			points[i] = fmt.Sprintf("%s: %s", short(p.Size), short(p.Cost))
		}
		fmt.Fprintf(&b, "| %s, %s | %s | %s | %s | %s |\n", c.What, c.Unit, c.Over, strings.Join(points, " · "), c.Order, c.Run)
	}
	return b.String()
}

// growthFile is the report in its directory.
const growthFile = "growth.json"

// Write puts the curves into a directory that may have others: the report, and the
// table of its README.md.
func (r GrowthReport) Write(dir string) error {
	merged, err := mergeReport(filepath.Join(dir, growthFile), r, GrowthReport.With)
	if err != nil {
		return err
	}
	return markdown.Section(filepath.Join(dir, "README.md"), "growth", merged.Markdown(), true)
}

// mergeReport adds a report to the one in a file, by with, and writes the sum back. A
// file that does not exist is an empty report.
func mergeReport[R any](path string, r R, with func(old, r R) R) (merged R, err error) {
	var old R
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return r, err
	default:
		if err := json.Unmarshal(text, &old); err != nil {
			return r, fmt.Errorf("%w: %s: %w; remove it to begin again", ErrNoReport, path, err)
		}
	}
	merged = with(old, r)
	if text, err = json.MarshalIndent(merged, "", "  "); err != nil {
		return r, err
	}
	return merged, os.WriteFile(path, append(text, '\n'), 0o644)
}

// short is a number with three digits.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3g M", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.3g k", v/1e3)
	}
	return fmt.Sprintf("%.3g", v)
}
