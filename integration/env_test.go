package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
	"github.com/almanac-events/almanac/sinks"
)

// env is one Almanac for one test.
type env struct {
	t   testing.TB
	srv *embeddedtest.Servers
	reg *registry.Registry
	// db and sinkDB are the tables as people's commands and sinks reach them, hand as who may do everything there.
	db, sinkDB, hand *tables.DB
}

// start sets up streams, registry and the given topics; no router and no sink.
func start(t testing.TB, topics ...schemas.Topic) *env {
	t.Helper()
	return setUp(t, embeddedtest.Start(t), topics...)
}

// running is start with a router and a sink.
func running(t testing.TB, topics ...schemas.Topic) *env {
	t.Helper()
	e := start(t, topics...)
	e.router()
	e.sink()
	return e
}

// newTopic is a topic of four lanes: most tests here are of what lanes do beside each other.
func newTopic(name string, fields ...schemas.Field) schemas.Topic {
	t := schemas.NewTopic(name, fields...)
	t.Lanes = 4
	return t
}

// setUp is start on given servers.
func setUp(t testing.TB, srv *embeddedtest.Servers, topics ...schemas.Topic) *env {
	t.Helper()
	return setUpWithin(t, srv, schemas.StreamLimits{EventsBytes: 1 << 30, ShardsBytes: 1 << 30, RegistryBytes: 16 << 20, Replicas: 1}, topics...)
}

// setUpWithin is setUp with streams of given sizes.
func setUpWithin(t testing.TB, srv *embeddedtest.Servers, limits schemas.StreamLimits, topics ...schemas.Topic) *env {
	t.Helper()
	e := &env{t: t, srv: srv}
	reg, err := registry.Setup(t.Context(), e.srv.NC(), limits)
	if err != nil {
		t.Fatal(err)
	}
	e.reg = reg
	for _, topic := range topics {
		if _, _, err := reg.Apply(t.Context(), topic, false); err != nil {
			t.Fatal(err)
		}
	}
	e.db, e.sinkDB, e.hand = e.openAs(access.UserOperator), e.openAs(access.UserSink), e.openAs(embedded.UserAlmanac)
	if err := e.db.EnsureLedger(t.Context()); err != nil { // as `almanac up` and sinks do
		t.Fatal(err)
	}
	return e
}

// openAs opens the tables by an account until the test ends.
func (e *env) openAs(user string) *tables.DB {
	e.t.Helper()
	db, err := tables.Open(e.srv.HTTPDSNOf(user))
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = db.Close() })
	return db
}

// background runs f until the test ends or stop is called, which waits for it.
func (e *env) background(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				e.t.Errorf("a part ended with: %v", err)
			}
		case <-time.After(maxWait * 30 * time.Second):
			e.t.Error("a part did not end when it was told")
		}
	}
	e.t.Cleanup(stop)
	return stop
}

// connect is a connection of its own, as another process would have.
func (e *env) connect() *nats.Conn {
	e.t.Helper()
	return e.connectTo(e.srv.NATSURL, e.srv.As(access.UserOperator)...)
}

// connectAs is connect for a part, which has a user of its own where NATS has users.
func (e *env) connectAs(user string) *nats.Conn {
	e.t.Helper()
	return e.connectTo(e.srv.NATSURL, e.srv.As(user)...)
}

func (e *env) connectTo(url string, opts ...nats.Option) *nats.Conn {
	e.t.Helper()
	nc, err := nats.Connect(url, append(opts, nats.Timeout(maxWait*4*time.Second), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(nc.Close)
	return nc
}

// registry is the registry over a part's own connection.
func (e *env) registry(nc *nats.Conn) *registry.Registry {
	e.t.Helper()
	reg, err := registry.Open(e.t.Context(), nc)
	if err != nil {
		e.t.Fatal(err)
	}
	return reg
}

// logf is for the parts' hooks, which may be called while the test ends.
func (e *env) logf(format string, args ...any) {
	if e.t.Context().Err() == nil {
		e.t.Logf(format, args...)
	}
}

func (e *env) router(change ...func(*router.Config)) (stop func()) {
	e.t.Helper()
	return e.routerOn(e.connectAs(access.UserRouter), change...)
}

func (e *env) routerOn(nc *nats.Conn, change ...func(*router.Config)) (stop func()) {
	e.t.Helper()
	cfg := router.Config{Registry: e.registry(nc), Discover: 200 * time.Millisecond, Hooks: router.Hooks{
		Fault: func(topic, lane string, err error) { e.logf("router %s/%s: %v", topic, lane, err) },
	}}
	for _, c := range change {
		c(&cfg)
	}
	r, err := router.New(e.t.Context(), nc, cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	return e.background(r.Run)
}

// sinkConfig configures sinks and the janitor beside them.
type sinkConfig struct {
	sinks.Config
	Retention retention.Config
}

func (e *env) sink(change ...func(*sinkConfig)) (stop func()) {
	e.t.Helper()
	return e.sinkOn(e.connectAs(access.UserSink), change...)
}

func (e *env) sinkOn(nc *nats.Conn, change ...func(*sinkConfig)) (stop func()) {
	e.t.Helper()
	cfg := sinkConfig{Config: sinks.Config{Registry: e.registry(nc), DB: e.sinkDB, Linger: 50 * time.Millisecond, Housekeeping: housekeeping, Hooks: sinks.Hooks{
		Fault: func(ref schemas.ShardRef, err error) { e.logf("sink %s: %v", ref, err) },
	}}}
	for _, c := range change {
		c(&cfg)
	}
	run, err := withJanitor(e.t.Context(), nc, cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	return e.background(run)
}

// housekeeping is what sinks of tests have: each round asks ClickHouse some questions, which six tests at once feel. Their janitor
// has no rows to ask about, and a round of it is what tests wait for.
const (
	housekeeping = time.Second
	janitorEvery = 200 * time.Millisecond
)

// withJanitor makes sinks and the janitor beside them, as `almanac sink` does. What both
// are told is told the sinks.
func withJanitor(ctx context.Context, nc *nats.Conn, cfg sinkConfig) (run func(context.Context) error, err error) {
	s, err := sinks.New(ctx, nc, cfg.Config)
	if err != nil {
		return nil, err
	}
	r := cfg.Retention
	r.Registry, r.DB, r.Every, r.Crash, r.Hooks.Fault = cfg.Registry, cfg.DB, cfg.Housekeeping, cfg.Crash, cfg.Hooks.Fault
	if r.Every == housekeeping { // a test that wants none says so with one number
		r.Every = janitorEvery
	}
	r.Owns = func() bool { return s.Owns("janitor") }
	j, err := retention.New(ctx, nc, r)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { _ = j.Run(ctx) })
		return s.Run(ctx)
	}, nil
}

func (e *env) producer(topic string, change ...func(*producer.Config)) *producer.Producer {
	e.t.Helper()
	cfg := producer.Config{Topic: topic, Service: "test", Policy: producer.Block}
	for _, c := range change {
		c(&cfg)
	}
	p, err := producer.New(e.t.Context(), e.connectAs(access.UserProducer), cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = p.Close(ctx)
	})
	return p
}

func (e *env) flush(p *producer.Producer) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), maxWait*time.Minute)
	defer cancel()
	if err := p.Flush(ctx); err != nil {
		e.t.Fatal(err)
	}
}

// wholeFrames has a producer's frames end where it is flushed, however slow the machine:
// for tests that count frames.
func wholeFrames(c *producer.Config) { c.Linger = time.Minute }

// count is what one SELECT of one number says.
func (e *env) count(q string, args ...any) uint64 {
	e.t.Helper()
	n, err := e.ask(q, args...)
	if err != nil {
		e.t.Fatal(err)
	}
	return n
}

// ask is count for those who ask until the answer is right: there may be no table yet.
func (e *env) ask(q string, args ...any) (n uint64, err error) {
	err = e.hand.Conn().QueryRow(e.t.Context(), fmt.Sprintf(q, args...)).Scan(&n)
	return n, err
}

func (e *env) table(topic string) string { return sql.QuotedTable(e.srv.Database, topic) }

// stored waits until the topic's table has n rows.
func (e *env) stored(topic string, n uint64, within time.Duration) {
	e.t.Helper()
	eventually(e.t, within, func() error {
		got, err := e.ask("SELECT count() FROM %s", e.table(topic))
		if err == nil && got != n {
			err = fmt.Errorf("%d rows are stored, want %d", got, n)
		}
		return err
	})
}

func eventually(t testing.TB, within time.Duration, ask func() error) {
	t.Helper()
	embeddedtest.Eventually(t, maxWait*within, ask)
}

// maxWait is how much longer than on a quiet machine a condition may take: the
// tests of several packages share its processors.
const maxWait = 5

// answered asks again where a server did not answer, as its error says to: a busy machine may
// keep it from an answer for longer than a client waits.
func answered[T any](ask func() (T, error)) (answer T, err error) {
	for range 5 {
		if answer, err = ask(); !errors.Is(err, streams.ErrCut) && !errors.Is(err, tables.ErrUnreachable) {
			break
		}
	}
	return answer, err
}

// again is a read that is answered.
func again[A, T any](read func(context.Context, A) (T, error)) func(context.Context, A) (T, error) {
	return func(ctx context.Context, a A) (T, error) {
		return answered(func() (T, error) { return read(ctx, a) })
	}
}

// setUpAgain makes the streams that are gone.
func (e *env) setUpAgain() {
	e.t.Helper()
	limits := schemas.StreamLimits{EventsBytes: 1 << 30, ShardsBytes: 1 << 30, RegistryBytes: 16 << 20, Replicas: 1}
	eventually(e.t, 10*time.Second, func() error {
		_, err := registry.Setup(e.t.Context(), e.srv.NC(), limits)
		return err
	})
}

// js is JetStream, which may take as long to answer as a busy machine does: the client's own wait is 5 s.
func (e *env) js() jetstream.JetStream {
	e.t.Helper()
	js, err := jetstream.New(e.reg.JetStream().Conn(), jetstream.WithDefaultTimeout(maxWait*10*time.Second))
	if err != nil {
		e.t.Fatal(err)
	}
	return js
}
