package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/sinks"
	"github.com/almanac-events/almanac/tables"
)

// What the reads are measured over.
const (
	readShards = 200
	readRows   = 10_000_000
)

// BenchmarkNewestPage compares a page of the 500 newest events with the best SQL
// for it by hand, in turns over the same idle Almanac: 10 M rows in 200 shards of
// one month, whose newest events came the usual way, by producer, router and sink.
// The figures are medians in ms:
//
//   - page: Query, with the registry, the checkpoints and the heads asked;
//   - hand: the same columns of the table, by time and limit alone;
//   - known: the same with the shards given that the page read, which nobody
//     writes by hand but a program that knows them.
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
	var keys []tables.ShardKey
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
		keys = append(keys, tables.ShardKey{Month: month, Shard: shard})
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

// fillShards makes 200 closed shards of 50,000 rows by SQL, entered in the
// registry as routers and sinks leave them, and then sends the newest events the
// usual way. It returns the month's first instant.
func fillShards(b *testing.B, cfg Config) time.Time {
	b.Helper()
	topic, err := schemas.NewTopic("app").Declared()
	if err != nil {
		b.Fatal(err)
	}
	if _, _, err := cfg.Registry.Apply(b.Context(), topic, false); err != nil {
		b.Fatal(err)
	}
	if err := cfg.DB.Ensure(b.Context(), &topic); err != nil {
		b.Fatal(err)
	}
	month := schemas.MonthOf(time.Now().UnixNano())
	closed := readShards - topic.Lanes // the lanes' active shards come the usual way
	each := int64(readRows/closed + 1)
	end := time.Now().Add(-time.Minute).UnixNano()
	span := (end - month.Start()) / int64(closed)
	at := time.Now()
	for i := range closed {
		lane := i % topic.Lanes
		s, err := cfg.Registry.Place(b.Context(), &topic, month, lane, at)
		if err != nil {
			b.Fatal(err)
		}
		lo := month.Start() + int64(i)*span
		step := span / each
		if err := cfg.Registry.Widen(b.Context(), &s, lo, lo+(each-1)*step, uint64(each), uint64(each*80), at); err != nil {
			b.Fatal(err)
		}
		insert := fmt.Sprintf(`INSERT INTO app (ts, id, level, service, type, user_id, trace_id, span_id, message, attributes, month, shard, pos)
			SELECT fromUnixTimestamp64Nano(%d + number * %d, 'UTC'), generateUUIDv7(), ['info','warn','error'][number %% 3 + 1], 'api', 'request', %s,
			lower(hex(rand64())), '', concat('GET /orders/', toString(rand() %% 100000), ' took ', toString(rand() %% 900), ' ms'), map('status', toString(200 + rand() %% 300), 'region', 'eu'), %d, %d, intDiv(number, 1000) + 1 FROM numbers(%d)`,
			lo, step, filledUser(i), uint32(month), uint64(s.ID), each)
		body, err := cfg.DB.Select(b.Context(), &tables.Select{SQL: insert, Settings: map[string]string{"max_insert_block_size": "4000000", "max_threads": "1"}})
		if err != nil {
			b.Fatal(err)
		}
		_ = body.Close()
		if _, err = cfg.Registry.Rotate(b.Context(), s, "rows", at); err == nil {
			err = cfg.Registry.Seal(b.Context(), "app", month, s.ID, uint64(each/1000+1), uint64(each), uint64(each*80))
		}
		if err == nil {
			if s, err = cfg.Registry.Shard(b.Context(), "app", month, s.ID); err == nil {
				_, err = cfg.Registry.Close(b.Context(), s, uint64(each), lo, lo+(each-1)*step)
			}
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	sendNewest(b, cfg)
	return time.Unix(0, month.Start())
}

// Users of whom some shards have rows: BenchmarkErase takes one after the other.
const (
	rareUsers = 5
	rareRows  = 1000 // of each
	rareEvery = 20   // one shard of so many has them
)

// filledUser is who a row of the nth shard is of: one of 5,000, or a rare one.
func filledUser(n int) string {
	const one = "concat('u-', toString(rand() % 5000))"
	if n%rareEvery != 0 {
		return one
	}
	in := rareRows * rareEvery / readShards // rows of each rare user in this shard
	return fmt.Sprintf("if(number < %d, concat('rare-', toString(number %% %d)), %s)", in*rareUsers, rareUsers, one)
}

// sendNewest sends the newest events through the whole pipeline, which is idle
// when it returns.
func sendNewest(b *testing.B, cfg Config) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	b.Cleanup(cancel)
	reg, err := registry.Open(ctx, cfg.NATS)
	if err != nil {
		b.Fatal(err)
	}
	route, err := router.New(ctx, cfg.NATS, router.Config{Registry: reg})
	if err != nil {
		b.Fatal(err)
	}
	store, err := sinks.New(ctx, cfg.NATS, sinks.Config{Registry: reg, DB: cfg.DB})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 2)
	go func() { done <- route.Run(ctx) }()
	go func() { done <- store.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done; <-done })
	p, err := producer.New(ctx, cfg.NATS, producer.Config{Topic: "app", Service: "api", Policy: producer.Block})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 20_000 {
		p.Log(producer.Event{Level: "info", Type: "request", UserID: fmt.Sprint("u-", i%5000), Message: fmt.Sprintf("GET /orders/%d took 3 ms", i),
			Attrs: []producer.Attr{schemas.String("status", "200"), schemas.String("region", "eu")}})
	}
	if err := p.Close(ctx); err != nil {
		b.Fatal(err)
	}
	r, err := query.New(cfg.NATS, reg, cfg.DB)
	if err != nil {
		b.Fatal(err)
	}
	if pending, err := r.WaitStored(ctx, time.Minute); err != nil || pending > 0 {
		b.Fatalf("%d events are not stored: %v", pending, err)
	}
}
