package console

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/producer"
)

const (
	// rowsEnv is how many rows TestLarge has, and tailEnv how long its tail is; make console-large says 10,000,000 and 600 s.
	rowsEnv  = "ALMANAC_CONSOLE_ROWS"
	tailEnv  = "ALMANAC_CONSOLE_TAIL_SECONDS"
	services = 20  // that wrote the rows
	ofUser   = 100 // rows of each user
)

// TestLarge holds the page over many rows, and a long tail, to their bars. The figures are printed.
func TestLarge(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(rowsEnv))
	if err != nil {
		t.Skip(rowsEnv + " says how many rows; make console-large sets it")
	}
	told := needed(t)
	up(t, told, "--events-bytes", "4GiB", "--shards-bytes", "8GiB")
	began := time.Now()
	fill(t, told["data"], began, n)
	t.Logf("%d rows of a day were sent in %s", n, time.Since(began).Round(time.Second))
	waitIdle(t, told["data"], n)
	told["tailSeconds"] = os.Getenv(tailEnv)
	drive(t, "large.mjs", told)
}

// waitIdle waits until n rows are stored and ClickHouse merges none, so that what came before does not slow what is timed.
func waitIdle(t *testing.T, data string, n int) {
	t.Helper()
	a, err := embedded.ReadAddresses(data)
	if err != nil {
		t.Fatal(err)
	}
	opts, err := clickhouse.ParseDSN(a.ClickHouseDSN)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := clickhouse.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	idle := 0
	embeddedtest.Eventually(t, maxWait, func() error {
		var stored, merges uint64
		if err := conn.QueryRow(t.Context(), "SELECT (SELECT count() FROM app), (SELECT count() FROM system.merges)").Scan(&stored, &merges); err != nil {
			return err
		}
		if idle++; stored < uint64(n) || merges > 0 { // one merge may follow another
			idle = 0
		}
		if idle < 10 {
			return fmt.Errorf("%d of %d rows are stored, and %d merges run", stored, n, merges)
		}
		return nil
	})
}

// fill sends n events of the day before a time, by many services and users, in the order of their times.
func fill(t *testing.T, data string, end time.Time, n int) {
	t.Helper()
	a, err := embedded.ReadAddresses(data)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	p, err := producer.Connect(ctx, a.NATS, producer.Config{Topic: "app", Policy: producer.Block})
	if err != nil {
		t.Fatal(err)
	}
	day := 24 * time.Hour
	for i := range n {
		mixed := uint64(i) * 0x9E3779B97F4A7C15 // the same rows each time, and not in an order that compresses them away
		p.Log(producer.Event{
			Time: end.Add(-day + time.Duration(float64(day)*float64(i)/float64(n))), Service: fmt.Sprintf("s-%d", mixed>>32%services),
			Level: []string{"info", "info", "info", "error"}[mixed>>30&3], Type: "request", UserID: fmt.Sprintf("u-%d", mixed>>20%uint64(n/ofUser)), Message: fmt.Sprintf("/items/%d took %d µs", i, mixed>>40&0xFFFF),
		})
	}
	if err := p.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); len(s.Dropped) > 0 {
		t.Fatalf("events were dropped: %v", s.Dropped)
	}
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
}
