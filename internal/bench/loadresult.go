package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/markdown"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// LoadResult is what a steady load cost. CPU is in microseconds an event, all else an
// event too unless its name says otherwise.
type LoadResult struct {
	LoadPoint
	EventBytes  int       `json:"event_bytes"`
	Lanes       int       `json:"lanes"`
	Began       time.Time `json:"began"`
	WarmSeconds float64   `json:"warm_seconds"`
	Seconds     float64   `json:"seconds"`
	Events      uint64    `json:"events"` // acknowledged while it was measured
	Accepted    uint64    `json:"accepted"`
	Dropped     uint64    `json:"dropped"`
	OtherCores  float64   `json:"other_cores"`

	// UpCPU is NATS, router and sinks, ProducerCPU the process that offers the load
	// without PacingCPU, which is what making events on a schedule takes there by itself.
	// The halves are ClickHouse's, so that what rises shows.
	UpCPU            float64 `json:"up_cpu_us"`
	EngineCPU        float64 `json:"clickhouse_cpu_us"`
	EngineFirstCPU   float64 `json:"clickhouse_first_half_cpu_us"`
	EngineSecondCPU  float64 `json:"clickhouse_second_half_cpu_us"`
	ProducerCPU      float64 `json:"producer_cpu_us"`
	PacingCPU        float64 `json:"pacing_cpu_us"`
	UpWritten        float64 `json:"up_written_bytes"`
	EngineWritten    float64 `json:"clickhouse_written_bytes"`
	UpWrites         float64 `json:"up_write_calls"`
	EngineSyncs      float64 `json:"clickhouse_syncs"`
	EventsMessages   float64 `json:"events_messages"` // messages of the streams
	ShardsMessages   float64 `json:"shards_messages"`
	Inserts          uint64  `json:"inserts"`
	RowsPerInsert    float64 `json:"rows_per_insert"`
	MergedRows       float64 `json:"merged_rows"`
	MaxLevel         uint64  `json:"max_level"`
	LiveParts        uint64  `json:"live_parts"`
	Parts            uint64  `json:"parts"`
	HeldBytes        uint64  `json:"held_bytes"`
	LiveBytes        uint64  `json:"live_bytes"`
	HeldShare        float64 `json:"held_share"`    // held against live, the most of all looks
	MergedBytes      float64 `json:"merged_bytes"`  // an event's, after OPTIMIZE FINAL
	WrittenShare     float64 `json:"written_share"` // what ClickHouse wrote against that
	UpResident       int64   `json:"up_resident_bytes"`
	UpMiddle         int64   `json:"up_resident_middle_bytes"`
	UpPeakBytes      int64   `json:"up_peak_bytes"`
	EngineResident   int64   `json:"clickhouse_resident_bytes"`
	EngineMiddle     int64   `json:"clickhouse_resident_middle_bytes"`
	EngineOpen       int     `json:"clickhouse_open_files"`
	EngineOpenMiddle int     `json:"clickhouse_open_files_middle"`
	UpOpen           int     `json:"up_open_files"`
	// From when a marked event was accepted until a query, or SQL, has it (LoadConfig.Marks).
	QueryP50Millis float64 `json:"query_p50_ms"`
	QueryP99Millis float64 `json:"query_p99_ms"`
	SQLP50Millis   float64 `json:"sql_p50_ms"`
	SQLP99Millis   float64 `json:"sql_p99_ms"`
	Looks          []Look  `json:"looks"`          // one a minute
	VerifySeconds  float64 `json:"verify_seconds"` // which found nothing missing and nothing twice
}

// CPU is that of all parts.
func (r *LoadResult) CPU() float64 { return r.UpCPU + r.EngineCPU + r.ProducerCPU }

// cores is how many cores up and its ClickHouse kept busy: what WatchOthers, which
// only knows processes that ended, takes for other work.
func (r *LoadResult) cores() float64 {
	return (r.UpCPU + r.EngineCPU) * float64(r.Events) / 1e6 / r.Seconds
}

func (r *LoadResult) fill(began, middle, end usage) {
	r.Began, r.Seconds, r.Events = began.at, end.at.Sub(began.at).Seconds(), end.events-began.events
	n := max(1, float64(r.Events))
	each := func(v float64) float64 { return v / n }
	cpu := func(from, to procUsage, events uint64) float64 {
		return (to.cpuSeconds - from.cpuSeconds) * 1e6 / max(1, float64(events))
	}
	r.UpCPU, r.ProducerCPU, r.EngineCPU = cpu(began.up, end.up, r.Events), cpu(began.own, end.own, r.Events), cpu(began.engine, end.engine, r.Events)
	r.ProducerCPU = max(0, r.ProducerCPU-r.PacingCPU)
	r.EngineFirstCPU, r.EngineSecondCPU = cpu(began.engine, middle.engine, middle.events-began.events), cpu(middle.engine, end.engine, end.events-middle.events)
	r.UpWritten, r.EngineWritten = each(float64(end.up.writeBytes-began.up.writeBytes)), each(float64(end.engine.writeBytes-began.engine.writeBytes))
	r.UpWrites = each(float64(end.up.writeCalls - began.up.writeCalls))
	since := func(name string) float64 { return float64(end.counters[name] - began.counters[name]) }
	r.EngineSyncs = each(since("FileSync") + since("DirectorySync"))
	r.EventsMessages, r.ShardsMessages = each(float64(end.eventsSeq-began.eventsSeq)), each(float64(end.shardsSeq-began.shardsSeq))
	r.Inserts, r.RowsPerInsert = uint64(since("InsertQuery")), since("InsertedRows")/max(since("InsertQuery"), 1)
	r.MergedRows, r.MaxLevel = each(since("MergedRows")), end.parts.maxLevel
	r.LiveParts, r.Parts, r.HeldBytes, r.LiveBytes = end.parts.liveParts, end.parts.parts, end.parts.heldBytes, end.parts.liveBytes
	for _, p := range []dataPartUsage{middle.parts, end.parts} {
		r.HeldShare = max(r.HeldShare, p.heldShare())
	}
	for _, l := range r.Looks {
		r.HeldShare = max(r.HeldShare, l.HeldShare)
	}
	r.UpResident, r.UpMiddle, r.EngineResident, r.EngineMiddle = end.up.rssBytes, middle.up.rssBytes, end.engine.rssBytes, middle.engine.rssBytes
	r.EngineOpen, r.EngineOpenMiddle, r.UpOpen = end.engine.openFiles, middle.engine.openFiles, end.up.openFiles
}

// merged measures what an event takes once the parts of each shard are one. Shards are merged
// one by one: an hour's events in one statement take longer than an answer may.
func (r *LoadResult) merged(ctx context.Context, cfg *Config) error {
	for i := range cfg.Topics {
		for m, last := schemas.MonthOf(r.Began.UnixNano()), schemas.MonthOf(time.Now().UnixNano()); m <= last; m = m.Next() {
			shards, err := cfg.Registry.Shards(ctx, cfg.topicName(i), m)
			if err != nil {
				return fmt.Errorf("bench: merging: %w", err)
			}
			for _, s := range shards {
				if err := mergeShard(ctx, cfg, s.Ref()); err != nil {
					return err
				}
			}
		}
	}
	p, err := heldParts(ctx, cfg)
	r.MergedBytes = float64(p.liveBytes) / max(1, float64(r.Accepted))
	r.WrittenShare = r.EngineWritten / max(1, r.MergedBytes)
	return err
}

// mergeShard merges a shard, after the merges that ClickHouse itself has under way there.
func mergeShard(ctx context.Context, cfg *Config, ref schemas.ShardRef) error {
	pause := backoff.Backoff{Least: 100 * time.Millisecond, Most: 5 * time.Second}
	for {
		err := cfg.DB.Merge(ctx, ref)
		if !errors.Is(err, tables.ErrBusy) {
			return err
		}
		if pause.Wait(ctx) != nil {
			return err
		}
	}
}

// LoadReport is what load.json holds.
type LoadReport struct {
	Machine Machine      `json:"machine"`
	Loads   []LoadResult `json:"loads"`
}

const loadFile = "load.json"

// With is the report with the loads of now in the place of the same ones. What
// another machine measured goes.
func (r LoadReport) With(now LoadReport) LoadReport {
	out := LoadReport{Machine: now.Machine, Loads: now.Loads}
	if !r.Machine.Same(now.Machine) {
		return out
	}
	for _, old := range r.Loads {
		if !slices.ContainsFunc(now.Loads, func(l LoadResult) bool { return l.LoadPoint == old.LoadPoint }) {
			out.Loads = append(out.Loads, old)
		}
	}
	slices.SortFunc(out.Loads, func(a, b LoadResult) int {
		if a.Topics != b.Topics {
			return a.Topics - b.Topics
		}
		return a.Rate - b.Rate
	})
	return out
}

// Write puts the loads into a directory that may have others: load.json, and the
// table of its README.md.
func (r LoadReport) Write(dir string) error {
	merged, err := mergeReport(filepath.Join(dir, loadFile), r, LoadReport.With)
	if err != nil {
		return err
	}
	return markdown.Section(filepath.Join(dir, "README.md"), "load", merged.Markdown(), true)
}

// Markdown is the report as a section of a README.
func (r LoadReport) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. Events of about 200 bytes; CPU in µs an event, without what making the events on a schedule takes.\n\n", r.Machine)
	b.WriteString("| events/s, topics | CPU, all | `up` | ClickHouse (halves) | producers | ClickHouse writes, against merged | held against live | rows merged, level | rows an insert | resident `up`, ClickHouse, MiB (middle) | open files (middle) | p99 `query`, SQL, ms | run |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, l := range r.Loads {
		quiet := "nothing else running"
		if l.OtherCores > quietCores {
			quiet = fmt.Sprintf("**%.1f cores busy with other work**", l.OtherCores)
		}
		fmt.Fprintf(&b, "| %d, %d | %.1f | %.1f | %.1f (%.1f, %.1f) | %.1f | %.0f bytes, %.1f × | %.1f × | %.1f, %d | %.0f | %d (%d), %d (%d) | %d (%d) | %.0f, %.0f | %s UTC, %.0f s after %.0f, %s |\n",
			l.Rate, l.Topics, l.CPU(), l.UpCPU, l.EngineCPU, l.EngineFirstCPU, l.EngineSecondCPU, l.ProducerCPU, l.EngineWritten, l.WrittenShare, l.HeldShare,
			l.MergedRows, l.MaxLevel, l.RowsPerInsert, l.UpResident>>20, l.UpMiddle>>20, l.EngineResident>>20, l.EngineMiddle>>20, l.EngineOpen, l.EngineOpenMiddle,
			l.QueryP99Millis, l.SQLP99Millis, l.Began.UTC().Format("2006-01-02 15:04"), l.Seconds, l.WarmSeconds, quiet)
	}
	return b.String()
}
