package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/bench"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

func TestUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ args, says string }{
		"an unknown figure":      {"--only lgo", "no such figure"},
		"an unknown growth":      {"--growth --only log", "--only"},
		"no load":                {"--load --only many", "RATExTOPICS"},
		"two sizes":              {"--quick --short", "two sizes"},
		"growth beside loads":    {"--growth --load", "stand alone"},
		"growth is not compared": {"--growth --against x", "stand alone"},
		"an argument":            {"log", "options only"},
		"an option it lacks":     {"--fast", "fast"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(strings.Fields(c.args), new(bytes.Buffer))
			if !errors.As(err, new(usageError)) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want a usage error with %q", err, c.says)
			}
		})
	}
	if o, err := parse([]string{"--against", "x"}, new(bytes.Buffer)); err != nil || len(o.measures) != len(bench.CheckNames()) {
		t.Errorf("a comparison measures %v (%v)", o, err)
	}
}

// One figure from the command line to the files: its servers start and end, it is printed, written and recorded, and
// compared with itself it has not fallen.
func TestMeasure(t *testing.T) {
	t.Parallel()
	embeddedtest.FindEngine(t)
	dir := t.TempDir()
	record := filepath.Join(dir, "recorded.json")
	var out, notes bytes.Buffer
	args := []string{"--quick", "--only", "disk", "--data", filepath.Join(dir, "data"), "--json", "--record", record}
	if err := measure(t.Context(), args, &out, &notes); err != nil && !strings.Contains(err.Error(), "missed their bar") {
		t.Fatalf("%v\n%s", err, &notes)
	}
	var r bench.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Figures) == 0 || r.Figures[0].Value <= 0 {
		t.Fatalf("%v: %s", err, &out)
	}
	recorded, err := bench.ReadReport(record)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.Fallen(recorded); n == 0 || err != nil {
		t.Errorf("%d compared: %v", n, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("beside the record there are %v (%v)", left, err)
	}
}
