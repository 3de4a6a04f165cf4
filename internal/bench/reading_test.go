package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// BenchmarkNewestPage compares a page of the 500 newest events with the best SQL
// for it by hand, in turns over the same idle Almanac: 10 M rows in some 200 shards
// of one month, all of which came by producer, router and sink.
// The figures are medians in ms:
//
//   - page: Query, with the registry, the checkpoints and the heads asked;
//   - hand: the same columns of the table, by time and limit alone;
//   - known: the same with the shards given that the page read, which
//     are not written by hand but by a program that knows them.
func BenchmarkNewestPage(b *testing.B) {
	cfg := config(b)
	from := fillShards(b, cfg)
	r, err := query.New(cfg.NATS, cfg.Registry, cfg.DB)
	if err != nil {
		b.Fatal(err)
	}
	t, err := cfg.Registry.Topic(b.Context(), "app")
	if err != nil {
		b.Fatal(err)
	}
	for name, req := range map[string]query.Request{
		"newest": {Topic: "app", Limit: 500},
		"hour":   {Topic: "app", Limit: 500, From: from.Add(10 * 24 * time.Hour), To: from.Add(10*24*time.Hour + time.Hour)},
		"filter": {Topic: "app", Limit: 500, Where: "user_id = 'u-77'", From: from.Add(10 * 24 * time.Hour), To: from.Add(10*24*time.Hour + 6*time.Hour)},
	} {
		b.Run(name, func(b *testing.B) { comparePage(b, cfg.DB, r, &t, req) })
	}
}

func comparePage(b *testing.B, db *tables.DB, r *query.Reader, t *schemas.Topic, req query.Request) {
	where := "1"
	if !req.From.IsZero() {
		where = fmt.Sprintf("ts >= fromUnixTimestamp64Nano(%d, 'UTC') AND ts <= fromUnixTimestamp64Nano(%d, 'UTC')", req.From.UnixNano(), req.To.UnixNano())
	}
	if req.Where != "" {
		where += " AND " + req.Where
	}
	hand := func(where string) time.Duration {
		began := time.Now()
		body, err := db.Select(b.Context(), &tables.Select{SQL: fmt.Sprintf("SELECT %s, month, shard, pos FROM app WHERE %s ORDER BY ts DESC, id DESC LIMIT 500 FORMAT JSONEachRow",
			strings.Join(t.Columns(t.Version), ", "), where)})
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(body)
		if took := time.Since(began); err == nil && strings.Count(string(text), "\n") > 0 {
			_ = body.Close()
			return took
		}
		b.Fatalf("%d bytes: %v", len(text), err)
		return 0
	}
	page, err := r.Query(b.Context(), req) // to warm up, and to know the shards
	if err != nil || len(page.Events) == 0 {
		b.Fatalf("%+v: %v", page, err)
	}
	var keys []schemas.ShardRef
	for _, name := range page.Shards {
		var m, s string
		if _, err := fmt.Sscanf(strings.ReplaceAll(name, ":", " "), "app-registry %s shard %s", &m, &s); err != nil {
			b.Fatal(err)
		}
		month, err := schemas.ParseMonth(m)
		shard, err2 := schemas.ParseShard(s)
		if err != nil || err2 != nil {
			b.Fatal(err, err2)
		}
		keys = append(keys, schemas.ShardRef{Topic: "app", Month: month, ID: shard})
	}
	known := tables.InShards(keys) + " AND " + where
	took := map[string][]time.Duration{}
	for b.Loop() {
		for range 3 { // in turns, so that all meet the same machine
			began := time.Now()
			if _, err := r.Query(b.Context(), req); err != nil {
				b.Fatal(err)
			}
			took["page"] = append(took["page"], time.Since(began))
			took["hand"] = append(took["hand"], hand(where))
			took["known"] = append(took["known"], hand(known))
		}
	}
	median := map[string]float64{}
	for name, all := range took {
		slices.Sort(all)
		median[name] = float64(all[len(all)/2].Microseconds()) / 1000
		b.ReportMetric(median[name], name+"-ms")
	}
	b.ReportMetric(median["page"]/median["hand"], "page/hand")
	b.ReportMetric(median["page"]/median["known"], "page/known")
	b.ReportMetric(float64(len(page.Shards)), "shards")
	b.ReportMetric(0, "ns/op")
}
