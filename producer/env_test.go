package producer

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// env is a NATS server of a test's own, with JetStream on a directory of its
// own, the EVENTS stream and the registry.
type env struct {
	tb   testing.TB
	opts server.Options
	srv  *server.Server
	nc   *nats.Conn // the test's own eyes
	js   jetstream.JetStream
}

type serverOptions = server.Options

type envOption func(*serverOptions, *jetstream.StreamConfig)

func withSync(o *serverOptions, _ *jetstream.StreamConfig) { o.SyncAlways = true }

func withMaxBytes(n int64) envOption {
	return func(_ *serverOptions, c *jetstream.StreamConfig) { c.MaxBytes = n }
}

func newEnv(tb testing.TB, topic schemas.Topic, options ...envOption) *env {
	tb.Helper()
	e := &env{tb: tb, opts: server.Options{
		ServerName: "test", Host: "127.0.0.1", Port: keptPort(tb), NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: tb.TempDir(),
	}}
	stream := schemas.EventsStream(schemas.StreamLimits{EventsBytes: 1 << 30, ShardsBytes: 1 << 30, Replicas: 1})
	for _, o := range options {
		o(&e.opts, &stream)
	}
	e.startServer()
	tb.Cleanup(e.stopServer)
	nc, err := nats.Connect(e.srv.ClientURL(), nats.Timeout(20*time.Second), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.UserInfo(e.opts.Username, e.opts.Password), nats.IgnoreAuthErrorAbort())
	e.must(err)
	tb.Cleanup(nc.Close)
	e.nc = nc
	e.js, err = jetstream.New(nc)
	e.must(err)
	ctx := e.ctx()
	_, err = e.js.CreateStream(ctx, stream)
	e.must(err)
	bucket := schemas.RegistryBucket(schemas.DefaultStreamLimits)
	bucket.MaxBytes = 1 << 20
	kv, err := e.js.CreateKeyValue(ctx, bucket)
	e.must(err)
	text, err := json.Marshal(topic)
	e.must(err)
	_, err = kv.Put(ctx, schemas.TopicKey(topic.Name), text)
	e.must(err)
	return e
}

func (e *env) must(err error) {
	e.tb.Helper()
	if err != nil {
		e.tb.Fatal(err)
	}
}

func (e *env) startServer() {
	e.tb.Helper()
	opts := e.opts // the server keeps and changes what it is given
	srv, err := server.NewServer(&opts)
	e.must(err)
	srv.Start()
	if !srv.ReadyForConnections(maxWait) {
		e.tb.Fatal("the NATS server did not get ready")
	}
	e.srv = srv
}

func (e *env) stopServer() {
	e.srv.Shutdown()
	e.srv.WaitForShutdown()
}

// ctx ends with the test, or after what no test may take.
func (e *env) ctx() context.Context {
	ctx, cancel := context.WithTimeout(e.tb.Context(), 3*time.Minute)
	e.tb.Cleanup(cancel)
	return ctx
}

// connect starts a producer that is closed with the test.
func (e *env) connect(cfg Config) *Producer {
	e.tb.Helper()
	p, err := Connect(e.ctx(), e.srv.ClientURL(), cfg)
	e.must(err)
	e.tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			e.tb.Logf("close: %v", err)
		}
	})
	return p
}

// read is a frame as a router finds it.
type read struct {
	subject string
	month   schemas.Month
	lane    int
	head    schemas.Frame
	msgID   string
	bytes   int
	events  []Event
}

// frames reads and checks every frame of EVENTS, in order.
func (e *env) frames(topic *schemas.Topic) []read {
	e.tb.Helper()
	ctx := e.ctx()
	stream, err := e.js.Stream(ctx, schemas.StreamEvents)
	e.must(err)
	info, err := stream.Info(ctx)
	e.must(err)
	if info.State.Msgs == 0 {
		return nil
	}
	cons, err := e.js.OrderedConsumer(ctx, schemas.StreamEvents, jetstream.OrderedConsumerConfig{})
	e.must(err)
	msgs, err := cons.Messages()
	e.must(err)
	defer msgs.Stop()
	var (
		out []read
		r   frame.Reader
	)
	for range info.State.Msgs {
		m, err := msgs.Next(jetstream.NextContext(ctx))
		e.must(err)
		meta, err := m.Metadata()
		e.must(err)
		f := read{subject: m.Subject(), msgID: m.Headers().Get(nats.MsgIdHdr), bytes: len(m.Data())}
		f.month, f.lane, err = schemas.ParseEventsSubject(m.Subject(), topic)
		e.must(err)
		f.head, err = schemas.ParseFrame(m.Headers())
		e.must(err)
		e.must(r.Open(m.Data(), topic, f.head.Schema))
		e.must(r.Check(f.head, f.month, f.lane, meta.Timestamp.UnixNano()))
		if want := schemas.MsgID(f.head.Producer, topic.Name, f.lane, f.head.Seq); f.msgID != want && !strings.HasPrefix(f.msgID, "k.") {
			e.tb.Errorf("Msg-Id %q, want %q", f.msgID, want)
		}
		for i := range r.Rows() {
			ev := r.Event(i)
			if l := schemas.LaneOf(topic, &ev, r.Ts(i), f.head.Producer); l != f.lane {
				e.tb.Errorf("event of user %q in lane %d, it belongs to %d", ev.UserID, f.lane, l)
			}
			f.events = append(f.events, ev)
		}
		out = append(out, f)
	}
	return out
}

// events is every event of EVENTS.
func (e *env) events(topic *schemas.Topic) []Event {
	e.tb.Helper()
	var all []Event
	for _, f := range e.frames(topic) {
		all = append(all, f.events...)
	}
	return all
}

// eventually polls until ok, or fails after what a busy machine may need.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(maxWait)
	defer deadline.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			tb.Fatalf("not within %s: %s", maxWait, what)
		}
	}
}

// checkSum is the law of Stats.
func checkSum(tb testing.TB, s Stats) {
	tb.Helper()
	if s.Logged != s.Stored+s.DroppedTotal()+s.Buffered+s.Spooled {
		tb.Errorf("logged %d != stored %d + dropped %d + buffered %d + spooled %d", s.Logged, s.Stored, s.DroppedTotal(), s.Buffered, s.Spooled)
	}
}

// maxWait is how long anything may take.
const maxWait = 2 * time.Minute

// nowhere is an address at which no server listens, whatever other tests do.
const nowhere = "nats://127.0.0.1:1"

// keptPort is a free port that stays free while its server restarts: below those that
// outgoing connections are given (32768 and up on Linux).
func keptPort(tb testing.TB) int {
	tb.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(17_000)))
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().(*net.TCPAddr).Port
	}
	tb.Fatal("no port is free")
	return 0
}

func user(i int) string { return fmt.Sprintf("u-%d", i) }
