package inputs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// mutatedSyslog sends changed messages by TCP, counted and by lines, a connection for
// each few, and by UDP. Nothing answers them.
func mutatedSyslog(ctx context.Context, n *node, count int, sent *atomic.Int64) {
	random := rand.New(rand.NewPCG(77, 14))
	message := `<34>1 2026-11-20T10:00:00.123456Z host app 7 ID47 [x@32473 a="b\"c" d="e"][y f="g"] a message`
	packets, err := net.Dial("udp", n.SyslogUDP)
	if err != nil {
		return
	}
	defer func() { _ = packets.Close() }()
	var c net.Conn
	for i := range count {
		if ctx.Err() != nil {
			break
		}
		text := string(mutate(random, []byte(message)))
		if i%3 == 0 {
			_, _ = packets.Write([]byte(text[:min(len(text), 60_000)]))
			sent.Add(1)
			continue
		}
		if c == nil {
			if c, err = net.Dial("tcp", n.SyslogTCP); err != nil {
				return
			}
		}
		if i%3 == 1 {
			text = fmt.Sprintf("%d %s", len(text)+random.IntN(3)-1, text)
		} else {
			text += "\n"
		}
		_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second)) // held back is right too
		if _, err := c.Write([]byte(text)); err != nil || random.IntN(50) == 0 {
			_ = c.Close()
			c = nil
		}
		sent.Add(1)
	}
	if c != nil {
		_ = c.Close()
	}
}

// rawCodec passes messages as they are.
type rawCodec struct{}

// Marshal implements encoding.CodecV2.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Name implements encoding.CodecV2.
func (rawCodec) Name() string { return "proto" }

var _ encoding.CodecV2 = rawCodec{}

// mutatedGRPC sends changed exports over gRPC. Each is answered, and none by a fault of
// the gateway.
func mutatedGRPC(ctx context.Context, t *testing.T, n *node, count int, answered *atomic.Int64) {
	random := rand.New(rand.NewPCG(78, 14))
	logs := plog.NewLogs()
	one := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	one.Body().SetStr("by gRPC")
	one.Attributes().PutEmptyMap("a").PutEmptySlice("b").AppendEmpty().SetInt(1)
	whole, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	if err != nil {
		t.Error(err)
		return
	}
	client, err := grpc.NewClient(n.OTLPGRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = client.Close() }()
	for range count {
		body, answer := mutate(random, append([]byte(nil), whole...)), []byte(nil)
		err := client.Invoke(ctx, "/opentelemetry.proto.collector.logs.v1.LogsService/Export", &body, &answer, grpc.ForceCodecV2(rawCodec{}))
		switch code := status.Code(err); code {
		case codes.OK, codes.InvalidArgument, codes.ResourceExhausted, codes.Unavailable:
		default:
			t.Errorf("gRPC with %q: %v", body, err)
		}
		answered.Add(1)
	}
}
