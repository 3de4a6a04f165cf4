package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/query"
)

// BenchmarkErase erases users from 10 M rows in some 200 shards, most of them closed:
//
//   - rare: 1,000 rows in 10 or 11 shards;
//   - everywhere: some 2,000 rows, a few of them in nearly every shard of a lane.
//
// settle-s is the wait until all is stored, of which a second is for parts that hold
// an older ledger; sweep-s what erasing took then. Of the shards, holding had rows
// of the user, and of rewritten any part is another one afterwards.
func BenchmarkErase(b *testing.B) {
	cfg := config(b)
	fillShards(b, cfg)
	r, err := query.New(cfg.NATS, cfg.Registry, cfg.DB)
	if err != nil {
		b.Fatal(err)
	}
	x, err := erasure.New(b.Context(), erasure.Config{Registry: cfg.Registry, Reader: r, DB: cfg.DB})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name, user string
		users      int
	}{{"rare", "rare-%d", rareUsers}, {"everywhere", "u-%d", usualOnes}} {
		b.Run(c.name, func(b *testing.B) {
			n, rows, holding, rewritten := 0, 0, 0, 0
			var settling, sweeping time.Duration
			var before map[string]string
			for b.Loop() {
				if n == c.users {
					b.Fatalf("there are %d users: -benchtime %dx at most", c.users, c.users)
				}
				if err := waitIdle(b.Context(), &cfg); err != nil {
					b.Fatal(err)
				}
				before = partsOf(b, &cfg)
				began := time.Now()
				e, err := x.Start(b.Context(), erasure.Request{Topic: "app", Users: []string{fmt.Sprintf(c.user, n)}})
				if err == nil {
					e, err = x.Run(b.Context(), e.Topic, e.ID)
				}
				if err != nil {
					b.Fatal(err)
				}
				settling += e.StoredAt.Sub(began)
				sweeping += e.ErasedAt.Sub(e.StoredAt)
				rows += int(e.Rows)
				changed := 0
				for partition, names := range partsOf(b, &cfg) {
					if names != before[partition] {
						changed++
					}
				}
				holding += e.Shards
				rewritten += changed
				n++
			}
			each := func(v float64, unit string) { b.ReportMetric(v/float64(n), unit) }
			each(settling.Seconds(), "settle-s")
			each(sweeping.Seconds(), "sweep-s")
			each(float64(rows), "rows")
			each(float64(holding), "holding")
			each(float64(rewritten), "rewritten")
			b.ReportMetric(float64(len(before)), "shards")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// partsOf is the names of the parts that are read, by partition.
func partsOf(b *testing.B, cfg *Config) map[string]string {
	b.Helper()
	var rows []struct {
		Partition string   `ch:"partition_id"`
		Names     []string `ch:"names"`
	}
	err := cfg.DB.Conn().Select(b.Context(), &rows, "SELECT partition_id, arraySort(groupArray(name)) AS names FROM system.parts "+
		"WHERE active AND database = ? AND table = 'app' AND NOT startsWith(name, 'patch-') GROUP BY partition_id", cfg.DB.Database)
	if err != nil {
		b.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range rows {
		out[r.Partition] = fmt.Sprint(r.Names)
	}
	return out
}
