package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// usage is what a running Almanac had used at one instant. Differences of two are
// what the time between them cost.
type usage struct {
	at              time.Time
	up, engine, own procUsage
	events          uint64 // acknowledged so far
	eventsSeq       uint64 // last sequences of the streams
	shardsSeq       uint64
	counters        map[string]uint64 // ClickHouse's, since its start
	parts           dataPartUsage
}

// procUsage is what one process used so far; what it holds is of the instant.
type procUsage struct {
	cpuSeconds float64
	writeBytes int64 // to storage; the kernel counts pages when they get dirty
	writeCalls int64
	rssBytes   int64
	openFiles  int
}

// dataPartUsage is what a database's tables hold on disk: in all data parts of ClickHouse, and in those that
// are read.
type dataPartUsage struct {
	heldBytes, liveBytes uint64
	parts, liveParts     uint64
	maxLevel             uint64
}

func procUsageOf(pid int) procUsage {
	p := procUsage{cpuSeconds: cpuOf(pid), rssBytes: statusBytes(pid, "VmRSS:")}
	dir := "/proc/" + strconv.Itoa(pid)
	if text, err := os.ReadFile(dir + "/io"); err == nil {
		for line := range strings.Lines(string(text)) {
			k, v, _ := strings.Cut(strings.TrimSpace(line), ": ")
			n, _ := strconv.ParseInt(v, 10, 64)
			switch k {
			case "write_bytes":
				p.writeBytes = n
			case "syscw":
				p.writeCalls = n
			}
		}
	}
	if fds, err := os.ReadDir(dir + "/fd"); err == nil {
		p.openFiles = len(fds)
	}
	return p
}

// heldParts reads what the tables of the config's topics hold.
func heldParts(ctx context.Context, cfg *Config) (dataPartUsage, error) {
	var p dataPartUsage
	q := "SELECT sum(bytes_on_disk), sumIf(bytes_on_disk, active), count(), countIf(active), maxIf(toUInt64(level), active) FROM system.parts WHERE database = ? AND startsWith(table, ?)"
	err := cfg.DB.Conn().QueryRow(ctx, q, cfg.DB.Database, cfg.prefix).Scan(&p.heldBytes, &p.liveBytes, &p.parts, &p.liveParts, &p.maxLevel)
	if err != nil {
		return p, fmt.Errorf("bench: parts: %w", err)
	}
	return p, nil
}

// usageTime bounds the reading of it all.
const usageTime = time.Minute

// usageNow reads everything. upPID is the `almanac up`, whose ClickHouse is enginePID.
func usageNow(ctx context.Context, cfg *Config, upPID int, events uint64) (usage, error) {
	ctx, done := context.WithTimeout(ctx, usageTime) // or nats.go waits 5 s: less than a stream that is behind may take
	defer done()
	u := usage{up: procUsageOf(upPID), engine: procUsageOf(cfg.EnginePID), own: procUsageOf(os.Getpid()), events: events, at: time.Now()}
	js, err := jetstream.New(cfg.NATS)
	if err != nil {
		return u, err
	}
	for name, last := range map[string]*uint64{schemas.StreamEvents: &u.eventsSeq, schemas.StreamShards: &u.shardsSeq} {
		s, err := js.Stream(ctx, name)
		if err != nil {
			return u, fmt.Errorf("bench: %s: %w", name, err)
		}
		*last = s.CachedInfo().State.LastSeq
	}
	if u.counters, err = counters(ctx, cfg); err != nil {
		return u, err
	}
	u.parts, err = heldParts(ctx, cfg)
	return u, err
}
