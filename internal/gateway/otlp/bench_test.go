package otlp

import (
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/almanac-events/almanac/schemas"
)

// BenchmarkDecode reads 1,000 records of about 250 bytes.
func BenchmarkDecode(b *testing.B) {
	topic := schemas.NewTopic("app", schemas.Field{Name: "duration_ms", Type: schemas.TypeFloat64}, schemas.Field{Name: "endpoint", Type: schemas.TypeLowCardinality})
	logs := plog.NewLogs()
	resource := logs.ResourceLogs().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "bench")
	records := resource.ScopeLogs().AppendEmpty().LogRecords()
	const n = 1000
	for i := range n {
		r := records.AppendEmpty()
		r.SetTimestamp(pcommon.NewTimestampFromTime(time.Unix(1_763_000_000, int64(i))))
		r.SetSeverityNumber(plog.SeverityNumberInfo)
		r.SetEventName("login")
		r.Body().SetStr(fmt.Sprintf("request served from cache after retry of upstream with status %d and token renewed for session", i))
		r.Attributes().PutStr("user.id", fmt.Sprintf("u-%d", i%100))
		r.Attributes().PutStr("endpoint", "/api/v1/item")
		r.Attributes().PutInt("status", 200)
		r.Attributes().PutDouble("duration_ms", float64(i)+0.25)
	}
	for name, marshal := range map[string]func(plogotlp.ExportRequest) ([]byte, error){"proto": plogotlp.ExportRequest.MarshalProto, "json": plogotlp.ExportRequest.MarshalJSON} {
		b.Run(name, func(b *testing.B) {
			body, err := marshal(plogotlp.NewExportRequestFromLogs(logs))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				got := 0
				err := decode(body, name == "json", &topic, func(_ *schemas.Event, err error) {
					if err == nil {
						got++
					}
				})
				if err != nil || got != n {
					b.Fatal(got, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/event")
		})
	}
}
