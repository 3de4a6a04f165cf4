package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/rollups"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/series"
	"github.com/almanac-events/almanac/schemas"
	topickinds "github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

const (
	seriesShards = 4
	// seriesInserts of each shard: as many parts as a shard has that is not merged yet.
	seriesInserts = 20
	// seriesEvery is the time between two points of a series.
	seriesEvery = 10 * time.Second
	seriesName  = "cpu"
)

// metrics are a topic of kind metric whose points were made by ClickHouse itself: what is
// measured are the reads, and not the way in.
type metrics struct {
	read       *series.Reader
	topic      string
	begin, end time.Time
}

// makeMetrics declares a topic, fills its table with so many points of each of so many series,
// and examines and lists them as a sink's roll-ups do.
func makeMetrics(ctx context.Context, cfg *Config, of, points int) (*metrics, error) {
	topic, err := schemas.Topic{Name: fmt.Sprintf("metrics_%d_%d", of, points), Kind: topickinds.Metric}.Declared()
	if err != nil {
		return nil, err
	}
	if _, _, err := cfg.Registry.Apply(ctx, topic, false); err != nil {
		return nil, err
	}
	if err := cfg.DB.Ensure(ctx, &topic); err != nil {
		return nil, err
	}
	month := schemas.MonthOf(time.Now().AddDate(0, -1, 0).UnixNano())
	m := &metrics{topic: topic.Name, begin: time.Unix(0, month.Start()).UTC().Add(time.Second)}
	m.end = m.begin.Add(time.Duration(points) * seriesEvery)
	each := (points + seriesInserts - 1) / seriesInserts
	for from := 0; from < points; from += each {
		n := min(each, points-from)
		// A series is in one shard, as its lane says; 1,000 hosts are in ten regions.
		if err := cfg.DB.Conn().Exec(ctx, fmt.Sprintf(`INSERT INTO %s (ts, id, type, attributes, value, points, month, shard, pos)
SELECT fromUnixTimestamp64Milli(toInt64(%d + intDiv(number, %d) * %d), 'UTC'), generateUUIDv7(number), '%s', map('host', toString(number %% %d), 'region', toString(number %% %d %% 10)), (number * 7919 %% 1000003) / 1000, '%s', %d, number %% %d %% %d + 1, %d
FROM numbers(%d) SETTINGS max_partitions_per_insert_block = 0, max_insert_block_size = 1000000, min_insert_block_size_rows = 1000000`,
			sql.QuotedTable(cfg.DB.Database, topic.Name), m.begin.Add(time.Duration(from)*seriesEvery).UnixMilli(), of, seriesEvery.Milliseconds(), seriesName, of, of, topickinds.PointsGauge,
			uint32(month), of, seriesShards, from/each+1, n*of)); err != nil {
			return nil, fmt.Errorf("making points: %w", err)
		}
	}
	var fault error
	rolls, err := rollups.New(rollups.Config{Registry: cfg.Registry, DB: cfg.DB, Hooks: rollups.Hooks{Fault: func(_ schemas.ShardRef, err error) { fault = err }}})
	if err != nil {
		return nil, err
	}
	for more := true; more; {
		if more, err = rolls.Round(ctx); err != nil || fault != nil {
			return nil, fmt.Errorf("listing series: %w", errorOf(err, fault))
		}
	}
	q, err := query.New(cfg.NATS, cfg.Registry, cfg.DB)
	if err != nil {
		return nil, err
	}
	m.read = series.New(q)
	return m, nil
}

func errorOf(err, fault error) error {
	if err != nil {
		return err
	}
	return fault
}

// seriesRead is one of the reads that have a bar.
type seriesRead struct {
	name, what string
	unit       string
	bar        float64
	rounds     int
	req        func(*metrics) series.Request
}

var seriesReads = []seriesRead{
	{"series_all", "1,000 series of 10,000 points to 60 s, mean, by a label", unitMillis, 5000, 5, func(m *metrics) series.Request {
		return series.Request{From: m.begin, To: m.end, Align: series.Mean, Reduce: series.Mean, By: []string{"region"}}
	}},
	{"series_hour", "an hour of 1,000 series, to 60 s, mean", unitMillis, 250, 15, func(m *metrics) series.Request {
		return series.Request{From: m.begin, To: m.begin.Add(time.Hour), Align: series.Mean}
	}},
	{"series_one", "one series of 1,000 by its label, to 60 s, mean", unitMillis, 30, 15, func(m *metrics) series.Request {
		return series.Request{From: m.begin, To: m.end, Align: series.Mean, Where: "attributes.host = '7'"}
	}},
}

// time returns the median of a read in ms, how many points it has, and why it was refused. The
// first one, which loads marks and keys, is not counted.
func (m *metrics) time(ctx context.Context, r *seriesRead, rounds int) (ms float64, points int, err error) {
	req := r.req(m)
	req.Topic, req.Metric, req.Period = m.topic, seriesName, time.Minute
	var took samples
	for i := range rounds + 1 {
		began := time.Now()
		a, err := m.read.Align(ctx, req)
		if err != nil {
			return 0, 0, err
		}
		if i > 0 {
			took = append(took, time.Since(began))
		}
		points = 0
		for _, g := range a.Groups {
			points += len(g.Points)
		}
	}
	if points == 0 {
		return 0, 0, fmt.Errorf("%s: no points", r.name)
	}
	return millis(took.quantile(0.5)), points, nil
}
