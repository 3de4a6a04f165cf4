package lines

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/schemas"
)

// BenchmarkDecode reads 1,000 lines of about 250 bytes.
func BenchmarkDecode(b *testing.B) {
	topic := schemas.NewTopic("app", schemas.Field{Name: "duration_ms", Type: schemas.TypeFloat64}, schemas.Field{Name: "endpoint", Type: schemas.TypeLowCardinality})
	var text strings.Builder
	const lines = 1000
	for i := range lines {
		fmt.Fprintf(&text, `{"duration_ms":%d.25,"endpoint":"/api/v1/item","level":"info","message":"request served from cache after retry of upstream with status %d and token renewed for session","service":"bench","status":200,"ts":"2026-11-20T10:00:00.%06dZ","type":"login","user_id":"u-%d"}`+"\n", i, i, i, i%100)
	}
	body := []byte(text.String())
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		err := Decode(body, intake.Options{Format: intake.FormatNDJSON, Now: time.Now(), Topic: &topic}, func(rec *Record) error {
			n++
			return rec.Err
		})
		if err != nil || n != lines {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lines, "ns/event")
}
