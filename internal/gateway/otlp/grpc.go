package otlp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // exporters compress with it
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// Bounds of the gRPC listener.
const (
	maxMessage = 16 << 20
	maxStreams = 128 // of a connection
	// maxCalls bounds the calls under way over all connections, of clients that may send. One with a wrong secret is not counted: it
	// waits for its answer (access/keep), and must not take the place of others.
	maxCalls = 64
	// maxReads bounds the messages that are being read. No byte of them is counted in the
	// pool yet, so up to maxReads messages, packed and unpacked, are held beside it.
	maxReads = 4
	// readWait bounds the reading of a message.
	readWait = 10 * time.Second
	// Windows bound what is held of calls that nothing reads yet. Set, they do not grow.
	streamWindow     = 64 << 10
	connectionWindow = 256 << 10
)

// GRPC serves the services of logs and metrics.
type GRPC struct {
	srv   *grpc.Server
	calls atomic.Int64
	reads chan struct{}
	wait  time.Duration // readWait, but in tests

	onLimit request.OnLimit
}

// NewGRPC prepares a server of the input; secure is its TLS, nil for plain text.
func (in *Input) NewGRPC(secure *tls.Config) *GRPC {
	g := &GRPC{reads: make(chan struct{}, maxReads), wait: readWait, onLimit: in.cfg.OnLimit}
	if g.onLimit == nil {
		g.onLimit = func(string, string) {}
	}
	speaks := insecure.NewCredentials()
	if secure != nil {
		speaks = credentials.NewTLS(secure)
	}
	g.srv = grpc.NewServer(
		grpc.Creds(speaks),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(5*time.Second), grpc.MaxHeaderListSize(32<<10),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 5 * time.Minute, Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(connectionWindow),
		grpc.ForceServerCodecV2(bytesCodec{}), grpc.InTapHandle(g.admit),
	)
	for name, of := range map[string]service{"logs.v1.LogsService": in.logs(), "metrics.v1.MetricsService": in.metrics()} {
		g.srv.RegisterService(&grpc.ServiceDesc{
			ServiceName: "opentelemetry.proto.collector." + name, HandlerType: (*any)(nil),
			Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: func(_ any, ctx context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				return in.answer(ctx, of, g.enter, func(ctx context.Context) ([]byte, error) { return g.read(ctx, dec) })
			}}},
		}, in)
	}
	return g
}

// Serve serves a listener until Shutdown.
func (g *GRPC) Serve(l net.Listener) error {
	if err := g.srv.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("OTLP/gRPC: %w", err)
	}
	return nil
}

// Shutdown takes no more calls and returns when those under way have ended, or ctx has.
func (g *GRPC) Shutdown(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		g.srv.GracefulStop()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		g.srv.Stop()
		<-ended
		return context.Cause(ctx)
	}
}

// read reads a call's message when no more than maxReads others are being read. The
// call ends with its error, which also ends a read under way.
func (g *GRPC) read(ctx context.Context, dec func(any) error) ([]byte, error) {
	room := time.NewTimer(pool.SpaceWait)
	defer room.Stop()
	select {
	case g.reads <- struct{}{}:
	case <-room.C:
		return nil, statusOf(fmt.Errorf("%w: %d messages are being read; send the call again", pool.ErrBusy, maxReads))
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	type message struct {
		body []byte
		err  error
	}
	read := make(chan message, 1)
	go func() {
		var m message
		m.err = dec(&m.body)
		<-g.reads
		read <- m
	}()
	slow := time.NewTimer(g.wait)
	defer slow.Stop()
	select {
	case m := <-read:
		return m.body, m.err
	case <-slow.C:
		return nil, status.Errorf(codes.Unavailable, "the message took longer than %s; send smaller ones", g.wait)
	}
}

// answer is Export with the raw message. It is read only once who asks may send something.
func (in *Input) answer(ctx context.Context, of service, enter func() (leave func(), err error), read func(context.Context) ([]byte, error)) (answer []byte, err error) {
	began, received := time.Now(), 0
	defer func() {
		if in.cfg.OnCall != nil {
			in.cfg.OnCall(httpCode(err), time.Since(began), received)
		}
	}()
	defer func() { // a fault of one call must not end the process
		if v := recover(); v != nil {
			if in.cfg.OnError != nil {
				in.cfg.OnError(request.Panicked("OTLP/gRPC", v, debug.Stack()))
			}
			answer, err = nil, status.Error(codes.Internal, "a fault in the gateway ended this call; the log says more")
		}
	}()
	md, _ := metadata.FromIncomingContext(ctx)
	if ctx, err = in.asked(ctx, md); err != nil {
		return nil, statusOf(err)
	}
	if err = in.cfg.Pool.Asked(ctx); err != nil {
		return nil, statusOf(err)
	}
	leave, err := enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	body, err := read(ctx)
	if err != nil {
		return nil, err
	}
	received = len(body)
	req := in.cfg.Pool.Begin(pool.InputOTLPGRPC)
	defer req.End()
	if from, ok := peer.FromContext(ctx); ok {
		req.From(pool.PeerOf(from.Addr.String()))
	}
	err = req.Ready(ctx)
	if err == nil {
		err = req.Grow(ctx, len(body)*weight)
	}
	if err != nil {
		return nil, statusOf(err)
	}
	if answer, err = of.export(ctx, req, cmp.Or(first(md, TopicKey), of.topic), first(md, "idempotency-key"), body, false); err != nil {
		return nil, statusOf(err)
	}
	return answer, nil
}

// asked returns the context of a call with who makes it.
func (in *Input) asked(ctx context.Context, md metadata.MD) (context.Context, error) {
	if in.cfg.Who == nil {
		return access.With(ctx, access.Almanac), nil
	}
	h := http.Header{}
	for name, values := range md {
		h[http.CanonicalHeaderKey(name)] = values
	}
	if name := access.Several(h); name != "" {
		return ctx, request.Refuse(http.StatusBadRequest, "bad_header", "the call has several of "+strings.ToLower(name)+": send one", "")
	}
	a := &access.Asked{Secret: access.SecretOf(h)}
	if p, ok := peer.FromContext(ctx); ok {
		from, _ := netip.ParseAddrPort(p.Addr.String())
		a.Peer = from.Addr()
		if p.LocalAddr != nil {
			local, _ := netip.ParseAddrPort(p.LocalAddr.String())
			a.Loopback = in.cfg.Loopback && local.Addr().Unmap().IsLoopback() && !access.Forwarded(h)
		}
		if t, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			a.Subject, a.SubjectEnds = request.SubjectOf(&t.State)
		}
	}
	who, err := in.cfg.Who(ctx, a)
	if err != nil {
		return ctx, err
	}
	return access.With(ctx, who), nil
}

func first(md metadata.MD, key string) string {
	if v := md.Get(key); len(v) > 0 {
		return v[0]
	}
	return ""
}

// httpCode is the code of HTTP that the same request would have had.
func httpCode(err error) int {
	switch status.Code(err) {
	case codes.OK:
		return http.StatusOK
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.NotFound:
		return http.StatusNotFound
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return http.StatusServiceUnavailable
	case codes.Unknown, codes.AlreadyExists, codes.FailedPrecondition, codes.Aborted, codes.OutOfRange, codes.Unimplemented, codes.Internal, codes.DataLoss:
	}
	return http.StatusInternalServerError
}

// statusOf is an error as a gRPC status, with RetryInfo where the same call may help.
func statusOf(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	code, _ := grpcCode(err)
	s := status.New(codes.Code(code), err.Error())
	if after := pool.RetryAfter(err); after > 0 && (codes.Code(code) == codes.Unavailable || codes.Code(code) == codes.ResourceExhausted) {
		if with, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)}); err == nil {
			s = with
		}
	}
	return s.Err()
}

// admit refuses a call before anything of it is held, when as many as may be are under way.
func (g *GRPC) admit(ctx context.Context, _ *tap.Info) (context.Context, error) {
	if g.calls.Load() >= maxCalls {
		return nil, g.fullOfCalls()
	}
	return ctx, nil
}

// enter counts a call before its message is read, until leave.
func (g *GRPC) enter() (leave func(), err error) {
	if g.calls.Add(1) > maxCalls { // several were admitted at once
		g.calls.Add(-1)
		return nil, g.fullOfCalls()
	}
	return func() { g.calls.Add(-1) }, nil
}

func (g *GRPC) fullOfCalls() error {
	g.onLimit("OTLP/gRPC calls", request.LimitFull)
	return statusOf(fmt.Errorf("%w: %d calls are under way; send the call again", pool.ErrBusy, maxCalls))
}

// bytesCodec hands messages over as they are: Decode looks how deep they nest before
// anything recurses into them.
type bytesCodec struct{}

var _ encoding.CodecV2 = bytesCodec{}

// Marshal implements encoding.CodecV2.
func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("cannot send %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot receive %T", v)
	}
	*b = data.Materialize()
	return nil
}

// Name implements encoding.CodecV2.
func (bytesCodec) Name() string { return "proto" }
