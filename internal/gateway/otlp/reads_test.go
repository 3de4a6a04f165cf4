package otlp

import (
	"context"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
