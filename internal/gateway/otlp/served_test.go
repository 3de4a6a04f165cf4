package otlp

import (
	"context"
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

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

func serve(t *testing.T) (*pooltest.Env, *Input, *httptest.Server) {
	t.Helper()
	e := pooltest.Start(t, nil, schemas.NewTopic("app"), schemas.NewTopic("auth"), schemas.NewTopicOf(kinds.Metric, "metrics"))
	in := New(Config{Pool: e.Pool, Topic: "app", MetricsTopic: "metrics"})
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
		"traces":            {"/v1/traces", typeJSON, "{}", nil, 404, "logs and metrics only"},
		"metrics for logs":  {"/t/app/v1/metrics", typeProto, "", nil, 400, "metrics go to topics of kind metric"},
		"bad metrics":       {"/v1/metrics", typeProto, "\xff\xff", nil, 400, "not an OTLP metrics request"},
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
	g := in.NewGRPC(nil)
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
