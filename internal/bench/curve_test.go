package bench

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func curveOf(growth, name string, run GrowthRun, points ...Point) Curve {
	return Curve{Growth: growth, Name: name, What: "a cost", Over: growth, Unit: unitMillis, Points: points, Run: run}.fitted()
}

// Curves of later runs stand beside those of earlier ones, each with its own run,
// in the table's order, and what a growth measured before goes as a whole.
func TestGrowthReportWith(t *testing.T) {
	m := Machine{CPUs: 2, FsyncMicros: 900}
	one, two := GrowthRun{Size: Full, Seconds: 60}, GrowthRun{Size: Short, Seconds: 20, OtherCores: 1.5}
	old := GrowthReport{Machine: m, Curves: []Curve{curveOf("rows", "rows", one), curveOf("rows", "rows-gone", one), curveOf("lanes", "lanes", one)}}
	now := GrowthReport{Machine: Machine{CPUs: 2, FsyncMicros: 400}, Curves: []Curve{curveOf("topics", "topics", two), curveOf("rows", "rows", two)}}
	got := old.With(now)
	var names []string
	for _, c := range got.Curves {
		names = append(names, c.Name+" "+string(c.Run.Size))
	}
	if want := "rows short, topics short, lanes full"; strings.Join(names, ", ") != want {
		t.Errorf("the curves are %v, want %s", names, want)
	}
	if other := old.With(GrowthReport{Machine: Machine{CPUs: 4}, Curves: now.Curves}); len(other.Curves) != 2 {
		t.Errorf("curves of two machines in one table: %+v", other.Curves)
	}
}

// A stopped run keeps what it wrote, and the next one adds to it.
func TestGrowthReportWrite(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("<!-- growth -->\n<!-- /growth -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 11, 21, 23, 50, 0, 0, time.UTC)
	m := Machine{CPUs: 2}
	for _, c := range []Curve{
		curveOf("rows", "rows-page", GrowthRun{Began: began, Size: Full, Seconds: 61}, Point{1e6, 2}, Point{4e6, 4}),
		curveOf("lanes", "lanes", GrowthRun{Began: began, Size: Quick, OtherCores: 1.25}, Point{1, 3}, Point{4, 3}),
	} {
		if err := (GrowthReport{Machine: m, Curves: []Curve{c}}).Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	var back GrowthReport
	text, err := os.ReadFile(filepath.Join(dir, growthFile))
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil || len(back.Curves) != 2 || back.Curves[0].Run.Began != began || len(back.Curves[0].Points) != 2 {
		t.Errorf("%+v: %v", back, err)
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	for _, want := range []string{
		"1 M: 2 · 4 M: 4 | less than linear, n^0.50 | 2026-11-21 23:50 UTC, full, 61 s, nothing else running |",
		"**1.2 cores busy with other work** |",
	} {
		if err != nil || !strings.Contains(string(readme), want) {
			t.Errorf("README.md lacks %q: %v\n%s", want, err, readme)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, growthFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := back.Write(dir); !errors.Is(err, ErrNoReport) {
		t.Errorf("over a broken file: %v", err)
	}
}

func TestSelectedGrowths(t *testing.T) {
	if all, err := SelectedGrowths(nil); err != nil || len(all) != len(GrowthNames()) {
		t.Errorf("%v %v", all, err)
	}
	if got, err := SelectedGrowths([]string{"lanes", "rows"}); err != nil || len(got) != 2 || got[0].Name != "rows" {
		t.Errorf("%v %v", got, err)
	}
	if _, err := SelectedGrowths([]string{"rows", "colours"}); !errors.Is(err, ErrUnknownGrowth) {
		t.Errorf("an unknown one: %v", err)
	}
}
