package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/almanac-events/almanac/schemas"
)

// disk compares what an event takes in SHARDS, and in ClickHouse once merged,
// with NDJSON of the very same events (every column but month, shard and pos, in
// time order) under zstd.
func disk(ctx context.Context, s *Suite) ([]Figure, error) {
	h, err := s.House(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	cfg := s.config(h, Config{Events: s.size(2_000_000)})
	topics, err := declare(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	parts, err := startParts(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	defer parts.stop()
	if _, _, err := load(parts.ctx, &cfg, topics); err != nil {
		return nil, parts.failed(err)
	}
	parts.stop()
	s.Progress("", "merging", 0, 1)
	table := schemas.QuotedTable(cfg.DB.Database, topics[0].Name)
	if err := cfg.DB.Conn().Exec(ctx, "OPTIMIZE TABLE "+table+" FINAL"); err != nil {
		return nil, fmt.Errorf("merging %s: %w", table, err)
	}
	var res Result
	if err := sizes(ctx, &cfg, &res); err != nil {
		return nil, err
	}
	ndjson, err := zstdBytes(ctx, h.ClickHouse, "SELECT * EXCEPT (month, shard, pos) FROM "+table+" ORDER BY ts, id")
	if err != nil {
		return nil, err
	}
	per := float64(ndjson) / float64(cfg.Events)
	how := "%s events of about %d bytes: %.1f bytes an event, against %.1f as NDJSON under zstd level 3 (written by ClickHouse)"
	return []Figure{
		atMost("disk_shards", "bytes of an event in SHARDS, against NDJSON and zstd", res.StreamDisk/per, unitRatio, 1,
			how+", headers included", count(cfg.Events), cfg.EventBytes, res.StreamDisk, per).
			raw("bytes_per_event", res.StreamDisk, "ndjson_zstd_bytes_per_event", per),
		atMost("disk_clickhouse", "bytes of an event in ClickHouse, merged, against NDJSON and zstd", res.TableDisk/per, unitRatio, 0.7,
			how+", after OPTIMIZE FINAL, indexes included", count(cfg.Events), cfg.EventBytes, res.TableDisk, per).
			raw("bytes_per_event", res.TableDisk, "ndjson_zstd_bytes_per_event", per),
	}, nil
}

// zstdBytes is how many bytes a statement's rows are as NDJSON under zstd.
func zstdBytes(ctx context.Context, clickhouse, statement string) (int64, error) {
	u, err := url.Parse(clickhouse)
	if err != nil {
		return 0, err
	}
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
