package otlp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/almanac-events/almanac/embedded/embeddedtest"
	"github.com/almanac-events/almanac/gateway/inputtest"
	"github.com/almanac-events/almanac/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/schemas"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

func decoded(t *testing.T, body []byte, isJSON bool) (events []schemas.Event) {
	t.Helper()
	err := Decode(body, isJSON, func(ev *schemas.Event, err error) {
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
			err := Decode(body, name == "json", func(*schemas.Event, error) {})
			if good != (err == nil) || !good && !errors.Is(err, ErrRequest) {
				t.Errorf("%s of depth %d: %v", name, depth, err)
			}
		}
	}
}

func serve(t *testing.T) (*pooltest.Env, *Input, *httptest.Server) {
	t.Helper()
	e := pooltest.Start(t, nil, schemas.NewTopic("app"), schemas.NewTopic("auth"))
	in := New(Config{Pool: e.Pool, Topic: "app"})
	srv := httptest.NewServer(in.Routes())
	t.Cleanup(srv.Close)
	return e, in, srv
}

func post(t *testing.T, url, contentType string, body []byte, headers ...string) (int, http.Header, []byte) {
	t.Helper()
	h := map[string]string{"Content-Type": contentType}
	for i := 0; i < len(headers); i += 2 {
		h[headers[i]] = headers[i+1]
	}
	a := inputtest.Send(t, http.MethodPost, url, h, body)
	return a.Status, a.Header, a.Body
}

// records are n log records, of which every tenth has a time that is refused where bad is
// not 0, up to bad of them.
func records(n, bad int) []byte {
	logs := plog.NewLogs()
	list := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for i := range n {
		r := list.AppendEmpty()
		r.SetTimestamp(pcommon.NewTimestampFromTime(time.Date(2026, 11, 20, 0, 0, 0, i, time.UTC)))
		if i%10 == 9 && bad > 0 {
			bad--
			r.SetTimestamp(pcommon.NewTimestampFromTime(time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)))
		}
		r.Body().SetStr(fmt.Sprint("record ", i))
	}
	body, _ := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	return body
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	e, _, srv := serve(t)
	code, h, body := post(t, srv.URL+"/v1/logs", typeProto, records(100, 3))
	resp := plogotlp.NewExportResponse()
	if err := resp.UnmarshalProto(body); err != nil || code != 200 || h.Get("Content-Type") != typeProto {
		t.Fatalf("%d %v %v", code, h, err)
	}
	if ps := resp.PartialSuccess(); ps.RejectedLogRecords() != 3 || !strings.Contains(ps.ErrorMessage(), "3 of 100 log records are refused") {
		t.Fatalf("%d %q", ps.RejectedLogRecords(), ps.ErrorMessage())
	}
	if n := len(e.Events("app")); n != 97 {
		t.Fatalf("%d events are stored, want 97", n)
	}
	// Sent again it is stored once; with a key of its own it is another request.
	if _, _, body = post(t, srv.URL+"/v1/logs", typeProto, records(10, 0)); len(body) != 0 {
		t.Fatalf("the first answer is %x, want an empty one: partial_success must be unset", body)
	}
	_, _, body = post(t, srv.URL+"/v1/logs", typeProto, records(10, 0))
	if err := resp.UnmarshalProto(body); err != nil || !strings.Contains(resp.PartialSuccess().ErrorMessage(), "counted once") {
		t.Fatalf("a repetition is answered with %q, %v", resp.PartialSuccess().ErrorMessage(), err)
	}
	if n := len(e.Events("app")); n != 107 {
		t.Fatalf("%d events are stored, want 107", n)
	}
	if code, _, _ = post(t, srv.URL+"/t/auth/v1/logs", typeProto, records(5, 0)); code != 200 || len(e.Events("auth")) != 5 {
		t.Fatalf("a topic in the path: %d, %d events", code, len(e.Events("auth")))
	}
	if code, h, body = post(t, srv.URL+"/v1/logs", typeJSON, []byte("{}")); code != 200 || h.Get("Content-Type") != typeJSON || string(body) != "{}" {
		t.Fatalf("an empty request: %d %s", code, body)
	}
}

func TestHTTPRefusals(t *testing.T) {
	t.Parallel()
	_, _, srv := serve(t)
	for name, c := range map[string]struct {
		path, contentType, body string
		headers                 []string
		status                  int
		in                      string
	}{
		"not JSON":          {"/v1/logs", typeJSON, "[", nil, 400, `"code":3`},
		"not protobuf":      {"/v1/logs", typeProto, "\xff\xff", nil, 400, "not an OTLP logs request"},
		"an unknown topic":  {"/t/nope/v1/logs", typeJSON, "{}", nil, 404, `"code":5`},
		"traces":            {"/v1/traces", typeJSON, "{}", nil, 404, "logs only"},
		"metrics":           {"/v1/metrics", typeProto, "", nil, 404, "logs only"},
		"text":              {"/v1/logs", "text/plain", "", nil, 415, "content type"},
		"a broken encoding": {"/v1/logs", typeJSON, "{}", []string{"Content-Encoding", "gzip"}, 400, `"code":3`},
	} {
		code, h, body := post(t, srv.URL+c.path, c.contentType, []byte(c.body), c.headers...)
		if code != c.status || !strings.Contains(string(body), c.in) || c.contentType == typeJSON && h.Get("Content-Type") != typeJSON {
			t.Errorf("%s: %d %q %q", name, code, h.Get("Content-Type"), body)
		}
	}
}

func TestGRPC(t *testing.T) {
	t.Parallel()
	e, in, _ := serve(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := in.NewGRPC()
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	nc, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	client := plogotlp.NewGRPCClient(nc)
	if _, err := client.Export(t.Context(), everything(), grpc.UseCompressor("gzip")); err != nil {
		t.Fatal(err)
	}
	got := e.Events("app")
	if len(got) != 1 || got[0].Message != "hello" || got[0].UserID != "u-7" {
		t.Fatalf("%+v", got)
	}
	to := func(topic string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), TopicKey, topic)
	}
	if _, err := client.Export(to("auth"), everything()); err != nil || len(e.Events("auth")) != 1 {
		t.Fatalf("a topic in the metadata: %v", err)
	}
	if _, err := client.Export(to("nope"), everything()); status.Code(err) != codes.NotFound {
		t.Fatalf("an unknown topic: %v", err)
	}
	deep, _ := nested(2_000)
	var answer []byte
	err = nc.Invoke(t.Context(), "/opentelemetry.proto.collector.logs.v1.LogsService/Export", deep, &answer, grpc.ForceCodecV2(bytesCodec{}))
	if status.Code(err) != codes.InvalidArgument {
		t.Fatalf("a deep body: %v", err)
	}
	e.Pool.Drain()
	_, err = client.Export(t.Context(), everything())
	if s := status.Convert(err); s.Code() != codes.Unavailable || len(s.Details()) != 1 || !strings.Contains(fmt.Sprint(s.Details()[0]), "retry_delay") {
		t.Fatalf("draining: %v %v", err, s.Details())
	}
	_ = nc.Close()
	if err := g.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
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
		_ = Decode(body, isJSON, func(ev *schemas.Event, err error) {
			if err == nil && len(ev.Attrs) > schemas.MaxAttrs {
				t.Fatalf("%d attributes", len(ev.Attrs))
			}
		})
	})
}
