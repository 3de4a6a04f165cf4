package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseLoadPoint(t *testing.T) {
	for text, want := range map[string]LoadPoint{
		"100": {100, 1}, "20000x64": {20_000, 64}, "20000x1": {20_000, 1},
	} {
		if p, err := ParseLoadPoint(text); p != want || err != nil {
			t.Errorf("%s is %+v, want %+v: %v", text, p, want, err)
		}
	}
	for _, text := range []string{"", "x", "0", "-5", "100x", "100x0", "100x257", "x4", "1e3", "100x4x4"} {
		if p, err := ParseLoadPoint(text); !errors.Is(err, ErrLoadPoint) {
			t.Errorf("%q is %+v, %v, want %v", text, p, err, ErrLoadPoint)
		}
	}
}

// A load's costs are differences of what was used at its beginning and at its end,
// an event; what is held is of the end, and of both looks the most.
func TestLoadResult(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	look := func(second float64, events uint64, held, live uint64) usage {
		return usage{
			at: at.Add(time.Duration(second * float64(time.Second))), events: events,
			up:       procUsage{cpuSeconds: 5 + second/10, writeBytes: int64(second * 1000), writeCalls: int64(second), rssBytes: int64(second) << 20},
			engine:   procUsage{cpuSeconds: 7 + second*second/1000, writeBytes: int64(second * 3000), openFiles: int(second)},
			own:      procUsage{cpuSeconds: second / 100},
			counters: map[string]uint64{"InsertQuery": uint64(second), "InsertedRows": events, "MergedRows": 2 * events, "FileSync": uint64(second) * 3, "DirectorySync": uint64(second)},
			parts:    dataPartUsage{heldBytes: held, liveBytes: live},
		}
	}
	var r LoadResult
	r.fill(look(100, 50_000, 1, 1), look(200, 55_000, 300, 100), look(300, 60_000, 400, 200))
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"seconds", r.Seconds, 200}, {"events", float64(r.Events), 10_000},
		{"up", r.UpCPU, 2_000}, {"producers", r.ProducerCPU, 200}, {"engine", r.EngineCPU, 8_000},
		{"first half", r.EngineFirstCPU, 6_000}, {"second half", r.EngineSecondCPU, 10_000}, {"all", r.CPU(), 10_200},
		{"engine's bytes", r.EngineWritten, 60}, {"up's bytes", r.UpWritten, 20}, {"syncs", r.EngineSyncs, 0.08},
		{"rows an insert", r.RowsPerInsert, 50}, {"merged", r.MergedRows, 2}, {"held share", r.HeldShare, 3},
		{"resident", float64(r.UpResident >> 20), 300}, {"open", float64(r.EngineOpen - r.EngineOpenMiddle), 100}, {"cores", r.cores(), 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got < c.want*0.9999 || c.got > c.want*1.0001 {
				t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
			}
		})
	}
}

// Memory has grown by the last five looks against the first five; nine say nothing.
func TestGrew(t *testing.T) {
	var r LoadResult
	for i := range 11 {
		if _, _, ok := r.Grew(); ok != (i >= 10) {
			t.Errorf("%d looks say: %v", i, ok)
		}
		r.Looks = append(r.Looks, Look{UpResident: int64(100 + 10*(i/6)), EngineResident: int64(300 - 150*(i/6))})
	}
	if up, engine, ok := r.Grew(); !ok || up != 1.1 || engine != 0.5 {
		t.Errorf("up %v, ClickHouse %v, %v", up, engine, ok)
	}
}

// A later run of a load takes the place of the earlier one; others stay.
func TestLoadReportWrite(t *testing.T) {
	dir := t.TempDir()
	readme := filepath.Join(dir, "README.md")
	if err := os.WriteFile(readme, []byte("before\n<!-- load -->\n<!-- /load -->\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := Machine{CPUs: 2}
	for _, l := range []LoadResult{
		{LoadPoint: LoadPoint{20_000, 64}, EngineCPU: 11.5}, {LoadPoint: LoadPoint{20_000, 1}, EngineCPU: 22.5}, {LoadPoint: LoadPoint{20_000, 64}, EngineCPU: 33.5},
	} {
		if err := (LoadReport{Machine: m, Loads: []LoadResult{l}}).Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	one, many := strings.Index(string(text), "22.5"), strings.Index(string(text), "33.5")
	if one < 0 || many < one || strings.Contains(string(text), "11.5") || !strings.HasSuffix(string(text), "after\n") {
		t.Errorf("the table is\n%s", text)
	}
	columns := -1
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		if n := strings.Count(line, "|"); columns >= 0 && n != columns {
			t.Errorf("a row has %d bars and not %d: %s", n, columns, line)
		} else {
			columns = n
		}
	}
}
