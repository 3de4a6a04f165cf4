package elastic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// BenchmarkDecode reads 1,000 items of about 250 bytes.
func BenchmarkDecode(b *testing.B) {
	topic := schemas.NewTopic("app", schemas.Field{Name: "duration_ms", Type: schemas.TypeFloat64}, schemas.Field{Name: "endpoint", Type: schemas.TypeLowCardinality})
	for name, action := range map[string]string{"same": `{"create":{}}`, "ids": `{"index":{"_index":"app","_id":"%d"}}`} {
		b.Run(name, func(b *testing.B) {
			var text strings.Builder
			const items = 1000
			for i := range items {
				if strings.Contains(action, "%") {
					fmt.Fprintf(&text, action, i)
				} else {
					text.WriteString(action)
				}
				fmt.Fprintf(&text, "\n"+`{"@timestamp":"2026-11-20T10:00:00.%06dZ","duration_ms":%d.25,"endpoint":"/api/v1/item","level":"info","message":"request served from cache after retry of upstream with status %d and token renewed for session","service":"bench","status":200,"type":"login","user_id":"u-%d"}`+"\n", i, i, i, i%100)
			}
			body := []byte(text.String())
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				got, err := Decode(body, Options{Index: "app", MaxItems: MaxItems, Topic: func(string) *schemas.Topic { return &topic }})
				if err != nil || len(got) != items || got[0].Err != nil {
					b.Fatal(len(got), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/items, "ns/event")
		})
	}
}
