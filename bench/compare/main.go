package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/almanac-events/almanac/internal/bench"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/markdown"
)

// contest is what every contestant gets.
type contest struct {
	events, eventBytes, senders int
	rate                        int // events a second of all senders; 0: as fast as they can

	addresses embedded.Addresses // of an `almanac up`
	db        driver.Conn
	dir       string // for files of theirs
	otelcol   string
	ended     float64 // seconds of CPU of processes that ended during a run
}

// contestant is one way into ClickHouse.
type contestant struct {
	Name       string `json:"name"`
	Durability string `json:"durability"`
	// run stores the events and returns when the last can be selected.
	run func(context.Context, *contest) (time.Duration, error)

	Rates []float64 `json:"events_per_second"`
	// Micros is CPU an event in µs, of all processes that take part, ClickHouse and senders
	// among them.
	Micros []float64 `json:"cpu_micros_an_event"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	c := &contest{senders: 4}
	almanac := flag.String("almanac", "bin/almanac", "the almanac program")
	flag.StringVar(&c.otelcol, "otelcol", "", "the Collector; empty leaves it out")
	flag.IntVar(&c.events, "events", 1_000_000, "events of each run")
	flag.IntVar(&c.eventBytes, "event-bytes", 200, "about the size of an event")
	flag.IntVar(&c.rate, "rate", 0, "events a second; 0: as fast as each can")
	rounds := flag.Int("rounds", 3, "runs of each, in turn")
	write := flag.String("write", "", "write compare.json, and the table of README.md, into this directory")
	flag.Parse()

	var err error
	if c.dir, err = os.MkdirTemp(".", ".compare-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(c.dir) }()
	stop, err := c.up(ctx, *almanac)
	if err != nil {
		return err
	}
	defer stop()
	all := []*contestant{almanacItself(), jetStreamRows()}
	if c.otelcol != "" {
		all = append(all, collector())
	}
	for range *rounds {
		for _, x := range all {
			began := bench.ProcessesCPU()
			c.ended = 0
			took, err := x.run(ctx, c)
			if err != nil {
				return fmt.Errorf("%s: %w", x.Name, err)
			}
			micros := (bench.ProcessesCPU() + c.ended - began) * 1e6 / float64(c.events)
			x.Rates, x.Micros = append(x.Rates, float64(c.events)/took.Seconds()), append(x.Micros, micros)
			fmt.Fprintf(os.Stderr, "%s: %.0f events/s, %.1f µs of CPU an event\n", x.Name, float64(c.events)/took.Seconds(), micros)
		}
	}
	table := c.table(all)
	fmt.Print(table)
	if *write == "" {
		return nil
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(*write, "compare.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return markdown.Section(filepath.Join(*write, "README.md"), "compare", table, true)
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func (c *contest) table(all []*contestant) string {
	var b strings.Builder
	version := ""
	_ = c.db.QueryRow(context.Background(), "SELECT version()").Scan(&version)
	fmt.Fprintf(&b, "%d cores, %s/%s, %s, ClickHouse %s; %d events of about %d bytes from %d senders%s, %d runs of each in turn, medians.\n\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), version, c.events, c.eventBytes, c.senders, c.offered(), len(all[0].Rates))
	b.WriteString("| | events/s until the last row | against Almanac | CPU an event, all parts | what is promised of an event that was accepted |\n|---|---|---|---|---|\n")
	for _, x := range all {
		fmt.Fprintf(&b, "| %s | %.0f k | %.2f × | %.1f µs | %s |\n", x.Name, median(x.Rates)/1000, median(x.Rates)/median(all[0].Rates), median(x.Micros), x.Durability)
	}
	return b.String()
}

// waitRows waits until a table has so many rows.
func (c *contest) waitRows(ctx context.Context, table string, want uint64) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := c.rows(ctx, table)
		if err != nil {
			return err
		}
		if n >= want {
			if n > want {
				return fmt.Errorf("%s has %d rows, %d were sent", table, n, want)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s has %d rows of %d: %w", table, n, want, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func (c *contest) rows(ctx context.Context, table string) (n uint64, err error) {
	err = c.db.QueryRow(ctx, "SELECT count() FROM "+table).Scan(&n)
	return n, err
}

// open connects to the ClickHouse of the up.
func (c *contest) open() (err error) {
	o, err := clickhouse.ParseDSN(c.addresses.ClickHouseDSN)
	if err != nil {
		return err
	}
	c.db, err = clickhouse.Open(o)
	return err
}
