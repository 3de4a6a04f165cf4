package otlp

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/almanac-events/almanac/internal/access"
)

// Only maxReads messages are read at once: what is held before it is counted in the pool
// is bounded. Calls whose message does not come make room for others.
func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	_, in, _ := serve(t)
	g := in.NewGRPC(nil)
	g.wait = time.Minute
	nc := dial(t, g)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range maxReads { // calls that never send their message
		_, err := nc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, "/opentelemetry.proto.collector.logs.v1.LogsService/Export")
		if err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); len(g.reads) < maxReads && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	client := plogotlp.NewGRPCClient(nc)
	within, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	_, err := client.Export(within, everything())
	if s := status.Convert(err); s.Code() != codes.ResourceExhausted || len(s.Details()) != 1 {
		t.Fatalf("beyond the bound: %v", err)
	}
	cancel() // their clients go away
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err = client.Export(within, everything()); err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		t.Fatalf("after they went away: %v", err)
	}
}

// Calls with wrong secrets wait for their answers, more of them than calls may be under way. An exporter with a right one is
// taken beside them.
func TestWrongSecretsTakeNoPlaces(t *testing.T) {
	t.Parallel()
	_, in, _ := serve(t)
	var waiting atomic.Int64
	in.cfg.Who = func(ctx context.Context, a *access.Asked) (*access.Principal, error) {
		if a.Secret == "right" {
			return access.Almanac, nil
		}
		waiting.Add(1)
		<-ctx.Done()
		return nil, errors.New("wrong")
	}
	g := in.NewGRPC(nil)
	bad, good := dial(t, g), dial(t, g)
	within, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	const flood = maxCalls + 8
	for range flood {
		go func() {
			_, _ = plogotlp.NewGRPCClient(bad).Export(metadata.AppendToOutgoingContext(within, "authorization", "Bearer wrong"), everything())
		}()
	}
	for waiting.Load() < flood && within.Err() == nil {
		runtime.Gosched()
	}
	if _, err := plogotlp.NewGRPCClient(good).Export(metadata.AppendToOutgoingContext(within, "authorization", "Bearer right"), everything()); err != nil {
		t.Errorf("beside %d calls with wrong secrets: %v", waiting.Load(), err)
	}
	if n := g.calls.Load(); n > 1 {
		t.Errorf("%d calls are counted", n)
	}
}

// A panic ends its call. Its client hears nothing of it, and the log has it with the stack.
func TestPanicsEndTheirCall(t *testing.T) {
	t.Parallel()
	_, in, _ := serve(t)
	said := make(chan error, 1)
	in.cfg.OnError = func(err error) { said <- err }
	in.cfg.Who = func(context.Context, *access.Asked) (*access.Principal, error) { panic("of the inside") }
	_, err := plogotlp.NewGRPCClient(dial(t, in.NewGRPC(nil))).Export(t.Context(), everything())
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "of the inside") {
		t.Errorf("answered is %v", err)
	}
	select {
	case err := <-said:
		if !strings.Contains(err.Error(), "of the inside") || !strings.Contains(err.Error(), "reads_test.go") {
			t.Errorf("reported is %v", err)
		}
	default:
		t.Error("nothing is reported")
	}
}
