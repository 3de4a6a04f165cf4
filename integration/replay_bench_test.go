package integration

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
)

// BenchmarkReplay is a replay to nowhere at full speed, from SHARDS, beside the
// same frames only read.
func BenchmarkReplay(b *testing.B) {
	topic := newTopic("app", schemas.Field{Name: "ms", Type: schemas.TypeFloat64})
	e := start(b, topic)
	e.router()
	const n = 500_000
	p := e.producer("app")
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for i := range n {
		p.Log(schemas.Event{Time: at.Add(time.Duration(i) * time.Millisecond), Level: "info", Type: "request", UserID: fmt.Sprintf("u-%d", i%5000),
			Message: "GET /v1/things was answered", Attrs: []schemas.Attr{schemas.String("region", "eu-1"), schemas.Float64("ms", float64(i%1000)/8)}})
	}
	e.flush(p)
	e.inShards("app", n)
	rate := func(b *testing.B) { b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "events/s") }
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			shards, err := e.reg.Shards(b.Context(), "app", 0)
			if err != nil {
				b.Fatal(err)
			}
			for _, s := range shards {
				err := streams.Gather(b.Context(), e.reg.JetStream(), schemas.StreamShards, schemas.ShardSubject("app", s.Month, s.ID), 1, nil,
					func(*streams.Message) (bool, error) { return true, nil })
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		rate(b)
	})
	for _, order := range []replay.Order{replay.ByPosition, replay.ByTime} {
		b.Run("replay by "+string(order), func(b *testing.B) {
			for b.Loop() {
				j, err := e.replayer(nil).Begin(b.Context(), replay.Request{Topic: "app", Order: order})
				if err != nil {
					b.Fatal(err)
				}
				if res, err := j.Run(b.Context(), io.Discard, replay.Pace{}); err != nil || res.Events != n {
					b.Fatal(res, err)
				}
			}
			rate(b)
		})
	}
}
