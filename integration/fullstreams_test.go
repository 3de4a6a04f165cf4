package integration

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/schemas"
)

// Nothing stores and both streams fill: each input says busy in its own protocol with nothing taken, no event that
// was accepted is evicted, and all of it is stored once when a sink runs.
func TestFullStreams(t *testing.T) {
	t.Parallel()
	limits := schemas.StreamLimits{EventsBytes: 6 << 20, ShardsBytes: 3 << 20, RegistryBytes: 16 << 20, Replicas: 1}
	e := setUpWithin(t, embeddedtest.Start(t), limits, newTopic("app"))
	e.router()
	in := e.inputs()

	accepted := 0
	post := func(n int) (int, string) {
		text := make([]byte, 30<<10) // of which no codec makes less than half
		_, _ = rand.Read(text)
		return call(t, in.http+"/v1/topics/app/events", "application/x-ndjson", fmt.Sprintf(`{"n":"%d","message":%q}`, n, hex.EncodeToString(text)))
	}
	for full := false; !full; {
		switch code, answer := post(accepted); {
		case code == http.StatusOK && accepted < 2000:
			accepted++
		case code == http.StatusServiceUnavailable && strings.Contains(answer, "outcome_unknown"):
			accepted++ // it came between two looks at the stream's size: the producer has it, and goes on sending it
		case code == http.StatusServiceUnavailable && strings.Contains(answer, "EVENTS is full"):
			full = true
		default:
			t.Fatalf("after %d events: %d %s", accepted, code, answer)
		}
	}

	client, err := grpc.NewClient(in.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	var all sync.WaitGroup
	expect := func(name string, code int, text string, send func() (int, string)) {
		all.Go(func() {
			if got, answer := send(); got != code || !strings.Contains(answer, text) {
				t.Errorf("%s with full streams: %d %.300s, want %d with %q", name, got, answer, code, text)
			}
		})
	}
	expect("lines", http.StatusServiceUnavailable, `"code":"stalled"`, func() (int, string) { return post(-1) })
	expect("OTLP over HTTP", http.StatusServiceUnavailable, "EVENTS is full", func() (int, string) {
		return call(t, in.otlp+"/v1/logs", "application/json", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1795204768142000000","body":{"stringValue":"x"}}]}]}]}`)
	})
	expect("Loki", http.StatusServiceUnavailable, "EVENTS is full", func() (int, string) {
		return call(t, in.http+"/loki/api/v1/push", "application/json", `{"streams":[{"stream":{"app":"a"},"values":[["1795204768142000000","x"]]}]}`)
	})
	expect("Elastic", http.StatusOK, `"status":429`, func() (int, string) {
		return call(t, in.http+"/elastic/app/_bulk", "application/x-ndjson", "{\"create\":{}}\n{\"message\":\"x\"}\n")
	})
	all.Go(func() {
		logs := plog.NewLogs()
		logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("x")
		_, err := plogotlp.NewGRPCClient(client).Export(t.Context(), plogotlp.NewExportRequestFromLogs(logs))
		if s := status.Convert(err); s.Code() != codes.Unavailable || len(s.Details()) != 1 {
			t.Errorf("OTLP over gRPC with full streams: %v %v", err, s.Details())
		}
	})
	all.Wait()

	e.sink()
	e.stored("app", uint64(accepted), 3*time.Minute)
	if n := e.count("SELECT uniqExact(attributes['n']) FROM %s", e.table("app")); n != uint64(accepted) {
		t.Errorf("%d of %d accepted events are stored", n, accepted)
	}
	eventually(t, time.Minute, func() error {
		if code, answer := post(accepted); code != http.StatusOK {
			return fmt.Errorf("after the streams drained: %d %s", code, answer)
		}
		return nil
	})
	t.Logf("%d events of 60 KiB were accepted before the streams were full", accepted)
}

// call posts a body, and returns the status and the answer.
func call(t *testing.T, url, contentType, body string) (int, string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.Header.Set("Content-Type", contentType)
	return do(t, req)
}

// do sends a request, and returns the status and the answer.
func do(t *testing.T, req *http.Request) (int, string) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(bytes.TrimSpace(answer))
}

// inputsOf are the addresses of a gateway's inputs.
type inputsOf struct{ http, otlp, grpc string }

// inputs runs a gateway with the listeners of all inputs that answer.
func (e *env) inputs() inputsOf {
	e.t.Helper()
	_, _, p := e.pool()
	var listeners [3]net.Listener
	for i := range listeners {
		var err error
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			e.t.Fatal(err)
		}
	}
	g := gateway.New(gateway.Config{
		HTTP: listeners[0], OTLPHTTP: listeners[1], OTLPGRPC: listeners[2], Topic: "app", Grace: 5 * time.Second,
		OnError: func(err error) { e.logf("gateway: %v", err) },
	})
	g.Open(gateway.Parts{Pool: p, Background: []func(context.Context) error{}})
	e.background(g.Run)
	return inputsOf{"http://" + listeners[0].Addr().String(), "http://" + listeners[1].Addr().String(), listeners[2].Addr().String()}
}
