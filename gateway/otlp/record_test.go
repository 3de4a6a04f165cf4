package otlp

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

// asOurs is what is read of each record of a request, as text.
func asOurs(body []byte) (lines []string, err error) {
	logs, err := Parse(body, false)
	if err != nil {
		return nil, err
	}
	var r record
	err = eachIn(logs.body.wire(), requestResources, func(resource wire) error {
		return eachIn(resource, resourceScopes, func(scope wire) error {
			return eachIn(scope, scopeRecords, func(one wire) error {
				if err := r.read(one); err != nil {
					return err
				}
				line := fmt.Sprint(r.time, r.observed, r.severity, r.dropped, r.flags, r.traceID, r.spanID) + fmt.Sprintf(" %q %q %s %q", r.severityText, r.event, r.body.kind, r.body.asText())
				for _, a := range r.attrs {
					line += fmt.Sprintf(" %q=%s %q", a.key, a.value.kind, a.value.asText())
				}
				lines = append(lines, line)
				return nil
			})
		})
	})
	return lines, err
}

// asTheirs is the same as OpenTelemetry's decoder reads it.
func asTheirs(body []byte) (lines []string, err error) {
	if err := checkProto(body, exportRequest); err != nil {
		return nil, err
	}
	req := plogotlp.NewExportRequest()
	if err := req.UnmarshalProto(body); err != nil {
		return nil, err
	}
	for _, rl := range req.Logs().ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				line := fmt.Sprint(uint64(r.Timestamp()), uint64(r.ObservedTimestamp()), int32(r.SeverityNumber()), r.DroppedAttributesCount(), uint32(r.Flags()), r.TraceID(), r.SpanID()) +
					fmt.Sprintf(" %q %q %s %q", r.SeverityText(), r.EventName(), r.Body().Type(), textOf(r.Body()))
				for name, v := range r.Attributes().All() {
					line += fmt.Sprintf(" %q=%s %q", name, v.Type(), textOf(v))
				}
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

// same holds what is read of a request to what OpenTelemetry's decoder makes of it.
func same(t interface{ Fatalf(string, ...any) }, body []byte) {
	theirs, err := asTheirs(body)
	if err != nil {
		_, _ = asOurs(body) // which must not end the process
		return
	}
	ours, err := asOurs(body)
	if err != nil || strings.Join(ours, "\n") != strings.Join(theirs, "\n") {
		t.Fatalf("%x: %v\n%s\nOpenTelemetry's decoder reads\n%s", body, err, strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
}

// Records are read as OpenTelemetry's decoder reads them, also of requests that are nearly good.
func TestReadAsOpenTelemetry(t *testing.T) {
	t.Parallel()
	good, err := everything().MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	same(t, good)
	if lines, err := asOurs(good); err != nil || len(lines) != 1 {
		t.Fatalf("%q, %v", lines, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		body := append([]byte(nil), good...)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			body[rapid.IntRange(0, len(body)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		same(t, body)
	})
}

func FuzzReadAsOpenTelemetry(f *testing.F) {
	body, _ := everything().MarshalProto()
	f.Add(body)
	deep, _ := nested(3)
	f.Add(deep)
	f.Fuzz(func(t *testing.T, body []byte) { same(t, body) })
}

// Resources and scopes without records cost no more than a look.
func TestManyScopesWithoutRecords(t *testing.T) {
	t.Parallel()
	scopes := strings.Repeat("\x12\x00", 1<<20) // ResourceLogs.scope_logs, empty
	n := 0
	err := decode(tagged(requestResources, []byte(scopes)), false, nil, func(*schemas.Event, error) { n++ })
	if err != nil || n != 0 {
		t.Errorf("%d events, %v", n, err)
	}
}
