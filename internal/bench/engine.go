package bench

import (
	"context"
	"fmt"
)

// Engine is what ClickHouse did in one phase, from its own counters.
type Engine struct {
	Inserts int `json:"inserts"`
	// RowsPerInsert is what an insert brought on average.
	RowsPerInsert float64 `json:"rows_per_insert"`
	Merges        int     `json:"merges"`
	// MergedRows is how often an event was written again by a merge, and
	// MergeMicros how long merges ran, an event (in all their threads' time).
	MergedRows  float64 `json:"merged_rows_per_event"`
	MergeMicros float64 `json:"merge_us_per_event"`
	// SyncMicros is time an event in which something waited for the disk.
	SyncMicros float64 `json:"sync_us_per_event"`
	// CPUMicros is the process's CPU time an event.
	CPUMicros float64 `json:"cpu_us_per_event"`
}

// counters reads ClickHouse's counters since its start.
func counters(ctx context.Context, cfg *Config) (map[string]uint64, error) {
	out, err := numbers(ctx, cfg, "SELECT event, value FROM system.events WHERE event IN "+
		"('InsertQuery','InsertedRows','Merge','MergedRows','MergeTotalMilliseconds','FileSyncElapsedMicroseconds','DirectorySyncElapsedMicroseconds','FileSync','DirectorySync')")
	if err != nil {
		return nil, fmt.Errorf("bench: ClickHouse's counters: %w", err)
	}
	return out, nil
}

// numbers returns a statement's rows, which are a name and a number each.
func numbers(ctx context.Context, cfg *Config, q string) (map[string]uint64, error) {
	rows, err := cfg.DB.Conn().Query(ctx, q)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	out := map[string]uint64{}
	for rows.Next() {
		var name string
		var v uint64
		if err := rows.Scan(&name, &v); err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, rows.Err()
}

// engineWatch counts from watchEngine to done.
type engineWatch struct {
	before map[string]uint64
	cpu    float64
}

func watchEngine(ctx context.Context, cfg *Config) (*engineWatch, error) {
	before, err := counters(ctx, cfg)
	return &engineWatch{before: before, cpu: cpuOf(cfg.EnginePID)}, err
}

func (w *engineWatch) done(ctx context.Context, cfg *Config) (Engine, error) {
	after, err := counters(ctx, cfg)
	if err != nil {
		return Engine{}, err
	}
	since := func(name string) float64 { return float64(after[name] - w.before[name]) }
	events := float64(cfg.Events)
	return Engine{
		Inserts: int(since("InsertQuery")), RowsPerInsert: since("InsertedRows") / max(since("InsertQuery"), 1),
		Merges: int(since("Merge")), MergedRows: since("MergedRows") / events, MergeMicros: since("MergeTotalMilliseconds") * 1000 / events,
		SyncMicros: (since("FileSyncElapsedMicroseconds") + since("DirectorySyncElapsedMicroseconds")) / events,
		CPUMicros:  (cpuOf(cfg.EnginePID) - w.cpu) * 1e6 / events,
	}, nil
}
