package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/almanac-events/almanac/schemas/sql"
)

// disk compares what an event takes in SHARDS, and in ClickHouse once merged, with NDJSON of the very same events (every column but
// month, shard and pos, in time order) under zstd.
func disk(ctx context.Context, s *Suite) ([]Figure, error) {
	d, err := s.diskRun(ctx)
	if err != nil {
		return nil, err
	}
	how := "%s events of about %d bytes: %.1f bytes an event, against %.1f as NDJSON under zstd level 3 (written by ClickHouse)"
	return []Figure{
		atMost("disk_shards", "bytes of an event in SHARDS, against NDJSON and zstd", d.StreamDisk/d.ndjson, unitRatio, 1,
			how+", headers included; %.2f µs of CPU an event in all, %.2f of it the producers', %.2f ClickHouse's",
			count(d.events), d.eventBytes, d.StreamDisk, d.ndjson, d.cpu(), d.CPUMicros["producer"], d.CPUMicros["clickhouse"]).
			raw("bytes_per_event", d.StreamDisk, "ndjson_zstd_bytes_per_event", d.ndjson,
				"cpu_us_per_event", d.cpu(), "producer_cpu_us_per_event", d.CPUMicros["producer"], "clickhouse_cpu_us_per_event", d.CPUMicros["clickhouse"]),
		atMost("disk_clickhouse", "bytes of an event in ClickHouse, merged, against NDJSON and zstd", d.TableDisk/d.ndjson, unitRatio, 0.7,
			how+", after OPTIMIZE FINAL, indexes included", count(d.events), d.eventBytes, d.TableDisk, d.ndjson).
			raw("bytes_per_event", d.TableDisk, "ndjson_zstd_bytes_per_event", d.ndjson),
	}, nil
}

// onDisk is a run's sizes, and NDJSON's under zstd in bytes an event.
type onDisk struct {
	Result
	events, eventBytes int
	ndjson             float64
}

// cpu is what all parts took together, in microseconds an event.
func (d *onDisk) cpu() (sum float64) {
	for _, v := range d.CPUMicros {
		sum += v
	}
	return sum
}

// diskRun runs events through servers of their own and merges what was stored.
func (s *Suite) diskRun(ctx context.Context) (*onDisk, error) {
	h, cfg, topics, err := s.declared(ctx, Config{Events: s.size(2_000_000), prefix: "disk_"})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	d := &onDisk{events: cfg.Events, eventBytes: cfg.EventBytes}
	if err := pipeline(ctx, &cfg, topics, &d.Result); err != nil {
		return nil, err
	}
	s.Progress("", "merging", 0, 1)
	table := sql.QuotedTable(cfg.DB.Database, topics[0].Name)
	if err := cfg.DB.Conn().Exec(ctx, "OPTIMIZE TABLE "+table+" FINAL"); err != nil {
		return nil, fmt.Errorf("merging %s: %w", table, err)
	}
	if err := sizes(ctx, &cfg, &d.Result); err != nil {
		return nil, err
	}
	n, err := zstdBytes(ctx, h.ClickHouse, "SELECT * EXCEPT (month, shard, pos) FROM "+table+" ORDER BY ts, toUInt128(id)")
	d.ndjson = float64(n) / float64(cfg.Events)
	return d, err
}

// zstdBytes is how many bytes a statement's rows are as NDJSON under zstd.
func zstdBytes(ctx context.Context, clickhouse, statement string) (int64, error) {
	u, err := url.Parse(clickhouse)
	if err != nil {
		return 0, err
	}
	// The engine's setting of zlib's level is that of zstd too. 3 is zstd's own default.
	q := url.Values{"query": {statement + " FORMAT JSONEachRow"}, "enable_http_compression": {"1"}, "http_zlib_compression_level": {"3"}}
	password, _ := u.User.Password()
	user := u.User.Username()
	u.User, u.Path, u.RawQuery = nil, "/", q.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-ClickHouse-User", user)
	req.Header.Set("X-ClickHouse-Key", password)
	req.Header.Set("Accept-Encoding", "zstd")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("reading the events as NDJSON from ClickHouse: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "zstd" {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return 0, fmt.Errorf("reading the events as NDJSON from ClickHouse: status %d, encoding %q: %s",
			resp.StatusCode, resp.Header.Get("Content-Encoding"), text)
	}
	return io.Copy(io.Discard, resp.Body)
}
