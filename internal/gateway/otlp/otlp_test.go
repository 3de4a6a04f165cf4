package otlp

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/schemas"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// decode calls each with the event of every record of a body.
func decode(body []byte, isJSON bool, topic *schemas.Topic, each func(ev *schemas.Event, err error)) error {
	logs, err := Parse(body, isJSON)
	if err == nil {
		err = logs.Events(topic, func(ev *schemas.Event, err error) error {
			each(ev, err)
			return nil
		})
	}
	return err
}

func decoded(t *testing.T, body []byte, isJSON bool) (events []schemas.Event) {
	t.Helper()
	err := decode(body, isJSON, nil, func(ev *schemas.Event, err error) {
		if err != nil {
			t.Error(err)
		}
		events = append(events, *ev)
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// A map may have two members of a name: the first is the message, and the other is kept.
func TestBodyWithTwoMessages(t *testing.T) {
	t.Parallel()
	const body = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1790000000000000000","body":{"kvlistValue":{"values":[
{"key":"message","value":{"stringValue":"first"}},{"key":"n","value":{"intValue":"1"}},{"key":"message","value":{"stringValue":"second"}}]}}}]}]}]}`
	events := decoded(t, []byte(body), true)
	if len(events) != 1 || events[0].Message != "first" || value(&events[0], "body.message") != "second" || value(&events[0], "body.n") != "1" || len(events[0].Attrs) != 2 {
		t.Errorf("%+v", events)
	}
}

func TestRecordedRequests(t *testing.T) {
	t.Parallel()
	packed := inputtest.Recorded(t, "otelcol-otlphttp-gzip.1")
	plain := inputtest.Recorded(t, "otelcol-otlphttp-json.1")
	both := inputtest.Text(decoded(t, inputtest.Gunzip(t, packed.Body), false)...)
	if asJSON := inputtest.Text(decoded(t, plain.Body, true)...); asJSON != both {
		t.Errorf("protobuf and JSON differ:\n%s\n%s", both, asJSON)
	}
	if n := strings.Count(both, "ts "); n != 20 {
		t.Errorf("%d events, want 20", n)
	}
	inputtest.Same(t, decoded(t, inputtest.Recorded(t, "telemetrygen-logs-otlp-http.1").Body, false)[:1], `
ts 2026-11-20T19:59:18.506387353Z
level info
service telemetrygen
message the message
  app server
  dropped_attributes:int 1
  resource.schema_url https://opentelemetry.io/schemas/1.40.0
`)
	inputtest.Same(t, decoded(t, inputtest.Recorded(t, "otel-js-logs.1").Body, true), `
ts 2026-11-20T19:59:35.929Z
level error
service unknown_service:node
message {"k":"map body","n":1}
  user u1
  list ["a",1,true]
  big:int 9007199254740991
  resource.telemetry.sdk.language nodejs
  resource.telemetry.sdk.name opentelemetry
  resource.telemetry.sdk.version 2.12.1
  scope.name x
`)
}

// everything is a request whose one record has every field there is.
func everything() plogotlp.ExportRequest {
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	rl.SetSchemaUrl("https://resource")
	rl.Resource().SetDroppedAttributesCount(3)
	rl.Resource().Attributes().PutStr("service.name", "api")
	rl.Resource().Attributes().PutStr("host.name", "h1")
	sl := rl.ScopeLogs().AppendEmpty()
	sl.SetSchemaUrl("https://scope")
	sl.Scope().SetName("lib")
	sl.Scope().SetVersion("1.2")
	sl.Scope().SetDroppedAttributesCount(4)
	sl.Scope().Attributes().PutBool("beta", true)
	r := sl.LogRecords().AppendEmpty()
	r.SetTimestamp(1_700_000_000_000_000_001)
	r.SetObservedTimestamp(1_700_000_000_000_000_002)
	r.SetSeverityNumber(18)
	r.SetSeverityText("SEVERE!")
	r.SetEventName("login")
	r.SetTraceID(pcommon.TraceID{1, 2, 15: 255})
	r.SetSpanID(pcommon.SpanID{3, 7: 254})
	r.SetFlags(plog.DefaultLogRecordFlags.WithIsSampled(true))
	r.SetDroppedAttributesCount(5)
	r.Attributes().PutStr("enduser.id", "u-7")
	r.Attributes().PutStr("host.name", "mine")
	r.Attributes().PutInt("n", -5)
	r.Attributes().PutDouble("f", 1.5)
	r.Attributes().PutEmptyBytes("raw").FromRaw([]byte{0, 1, 255})
	r.Attributes().PutEmptyMap("empty")
	deep := r.Attributes().PutEmptyMap("a").PutEmptyMap("b")
	deep.PutStr("c", "deep")
	body := r.Body().SetEmptyMap()
	body.PutStr("message", "hello")
	body.PutEmptySlice("list").AppendEmpty().SetInt(1)
	return plogotlp.NewExportRequestFromLogs(logs)
}

const everythingText = `
ts 2023-11-14T22:13:20.000000001Z
level error
service api
type login
user_id u-7
trace_id 010200000000000000000000000000ff
span_id 03000000000000fe
message hello
  host.name mine
  n:int -5
  f:float 1.5
  raw AAH/
  empty {}
  a.b.c deep
  observed_time 2023-11-14T22:13:20.000000002Z
  severity_number:int 18
  severity_text SEVERE!
  body.list [1]
  trace_flags:int 1
  dropped_attributes:int 5
  resource.host.name h1
  resource.dropped_attributes:int 3
  resource.schema_url https://resource
  scope.name lib
  scope.version 1.2
  scope.beta:bool true
  scope.dropped_attributes:int 4
  schema_url https://scope
`

func TestEveryFieldIsKept(t *testing.T) {
	t.Parallel()
	req := everything()
	proto, err := req.MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	inputtest.Same(t, decoded(t, proto, false), everythingText)
	asJSON, err := req.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	inputtest.Same(t, decoded(t, asJSON, true), everythingText)
}

func TestManyAttributes(t *testing.T) {
	t.Parallel()
	logs := plog.NewLogs()
	r := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	for i := range 300 {
		r.Attributes().PutInt(fmt.Sprint("a", i), int64(i))
	}
	r.Attributes().PutStr(strings.Repeat("k", 300), "long")
	body, _ := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	ev := decoded(t, body, false)[0]
	if err := ev.Validate(1, 1); err != nil {
		t.Fatal(err)
	}
	last := ev.Attrs[len(ev.Attrs)-1]
	if last.Key != schemas.AttrRest || !strings.Contains(last.Text(), `"a299":"299"`) || !strings.Contains(last.Text(), `"long"`) {
		t.Fatalf("the rest is %s=%s", last.Key, last.Text())
	}
}

// nested is a body that nests so deep.
func nested(depth int) (proto, asJSON []byte) {
	value, text := []byte{0x10, 1}, `{"boolValue":true}` // any_value.bool_value
	for range depth {
		inner := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), value)
		value = protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), inner)
		text = `{"arrayValue":{"values":[` + text + `]}}`
	}
	for _, field := range []protowire.Number{5, 2, 2, 1} { // body, log_records, scope_logs, resource_logs
		value = protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), value)
	}
	return value, []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":` + text + `}]}]}]}`)
}

func TestDeepBodies(t *testing.T) {
	t.Parallel()
	for depth, good := range map[int]bool{0: true, maxDepth: true, 100: false, 2_000: false} {
		proto, asJSON := nested(depth)
		for name, body := range map[string][]byte{"proto": proto, "json": asJSON} {
			err := decode(body, name == "json", nil, func(*schemas.Event, error) {})
			if good != (err == nil) || !good && !errors.Is(err, ErrRequest) {
				t.Errorf("%s of depth %d: %v", name, depth, err)
			}
		}
	}
}

// The decoder reads one JSON value and no further: what follows must not be lost in silence.
func TestOneRequestInABody(t *testing.T) {
	t.Parallel()
	one := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"} ] {"}}]}]}]}`
	for body, good := range map[string]bool{
		one: true, " " + one + "\r\n\t ": true,
		one + "\n" + one: false, one + "x": false, one + "]": false, one + "<html>": false, one + ",": false, one + "\x00": false,
	} {
		n := 0
		err := decode([]byte(body), true, nil, func(*schemas.Event, error) { n++ })
		if good && (err != nil || n != 1) || !good && (!errors.Is(err, ErrRequest) || n > 0) {
			t.Errorf("%q: %d records, %v", body, n, err)
		}
		if err := DecodeMetrics([]byte(body), true, nil, func([]schemas.Event, error) error { return nil }); !good && err == nil {
			t.Errorf("%q as metrics: %v", body, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	body, _ := everything().MarshalProto()
	f.Add(body, false)
	body, _ = everything().MarshalJSON()
	f.Add(body, true)
	deep, deepJSON := nested(20)
	f.Add(deep, false)
	f.Add(deepJSON, true)
	f.Fuzz(func(t *testing.T, body []byte, isJSON bool) {
		_ = decode(body, isJSON, nil, func(ev *schemas.Event, err error) {
			if err == nil && len(ev.Attrs) > schemas.MaxAttrs {
				t.Fatalf("%d attributes", len(ev.Attrs))
			}
		})
	})
}
