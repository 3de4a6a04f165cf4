package faults

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Topic of the numbered events.
const Topic = "numbered"

// Plan says what a Cluster is made of; zero fields have defaults.
type Plan struct {
	Routers, Sinks int
	// Three NATS servers that elect in place of one.
	Three bool
	// Dispatchers call timers back; none unless told.
	Dispatchers int
	// Rollups examine and sum; none unless told.
	Rollups int
	// Writers are the producers; Topic, Journal and Number are filled in.
	Writers []Writer
	// Rotate is when shards are full. Default 60,000 rows.
	Rotate schemas.Rotation
	// Limits of the streams. Default 4 GiB each.
	Limits schemas.StreamLimits
	// Proxied puts a Proxy into every link.
	Proxied bool
	// NATSDir and EngineDir hold the servers' data when they shall lie elsewhere.
	NATSDir, EngineDir string
	// Linger, BatchRows and InsertTimeout are the sinks'.
	Linger        time.Duration
	BatchRows     uint64
	InsertTimeout time.Duration
	// Keep is how long the sinks' janitor keeps what is stored in SHARDS, and what is routed in EVENTS. Default: theirs.
	Keep time.Duration
}

// Cluster is one Almanac under attack.
type Cluster struct {
	Dir  string
	Plan Plan

	NATS, Engine   *Part
	Peers          []*Part // with NATS the three servers that elect
	Routers, Sinks []*Part
	Dispatchers    []*Part
	Rollups        []*Part
	Writers        []*Part // those of now; a killed one is replaced by another with numbers of its own
	Gone           []*Part // those that were
	WriterLink     *Proxy  // producers to NATS
	RouterLink     *Proxy  // routers to NATS
	SinkLink       *Proxy  // sinks to NATS
	InsertLink     *Proxy  // sinks to ClickHouse
	NC             *nats.Conn
	SQL            *SQL
	Corrupter      *Corrupter
	t              testing.TB
	natsURL, dsn   string
	nextNumber     uint64
	cuts           int          // of EVENTS, with nothing on its way
	corrupters     sync.RWMutex // locked while nothing may be published
	mu             sync.Mutex   // Writers and Gone, which change while others look, and slowest
	slowest        time.Duration
}

// Build starts servers, routers and sinks, and waits until they work. Writers start with StartWriters.
func Build(t testing.TB, plan Plan) *Cluster {
	t.Helper()
	embeddedtest.FindEngine(t)
	plan = plan.withDefaults()
	h := &Cluster{t: t, Plan: plan, Dir: t.TempDir()}
	t.Cleanup(h.leave)
	for _, dir := range []string{"journals", "logs"} {
		if err := os.MkdirAll(filepath.Join(h.Dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if plan.Three {
		h.three()
	} else {
		port := embeddedtest.FreePort(t)
		h.natsURL = "nats://127.0.0.1:" + strconv.Itoa(port)
		h.NATS = h.part(Spec{Role: RoleNATS, Name: "nats", Dir: plan.NATSDir, Port: port, StoreBytes: 16 << 30, FreeBytes: 4 << 20})
	}
	h.Engine = h.part(Spec{Role: RoleEngine, Name: "engine", Dir: plan.EngineDir, Port: embeddedtest.FreePort(t), HTTPPort: embeddedtest.FreePort(t)})
	servers := append([]*Part{h.Engine, h.NATS}, h.Peers...)
	for _, p := range servers {
		if p.Spec.Dir == "" {
			p.Spec.Dir = filepath.Join(h.Dir, p.Spec.Name)
		}
		h.start(p)
	}
	for _, p := range servers {
		h.ready(p)
	}
	h.dsn = h.Engine.DSN()
	h.setup()
	h.workers()
	return h
}

func (p Plan) withDefaults() Plan {
	p.Routers, p.Sinks = max(p.Routers, 1), max(p.Sinks, 1)
	if p.Rotate == (schemas.Rotation{}) {
		p.Rotate = schemas.Rotation{Rows: 60_000}
	}
	if p.Limits == (schemas.StreamLimits{}) {
		p.Limits = schemas.StreamLimits{EventsBytes: 4 << 30, ShardsBytes: 4 << 30, RegistryBytes: 64 << 20, Replicas: 1}
		if p.Three {
			p.Limits.Replicas = 3
		}
	}
	if p.Linger == 0 {
		p.Linger = 300 * time.Millisecond
	}
	return p
}

// startWait is how long a part may take to be ready, servers to elect, and what a test awaits to come, on a machine that
// is busy.
const startWait = 5 * time.Minute

// setup connects the test itself, past all proxies, and makes streams and topic.
func (h *Cluster) setup() {
	h.t.Helper()
	nc, err := streams.Connect(h.natsURL, append(streams.Lasting("checker"), nats.ReconnectWait(50*time.Millisecond))...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.NC = nc
	ctx, cancel := context.WithTimeout(h.t.Context(), startWait)
	defer cancel()
	var reg *registry.Registry
	if err := until(ctx, startWait, time.Second, func(ctx context.Context) error { // servers that elect begin with it
		reg, err = registry.Setup(ctx, nc, h.Plan.Limits)
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
	topic := schemas.NewTopic(Topic)
	topic.Lanes = 4
	topic.Rotate = h.Plan.Rotate
	if err := until(ctx, startWait, time.Second, func(ctx context.Context) error { // as do streams of three that were just made
		_, _, err := reg.Apply(ctx, topic, false)
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
	if h.SQL, err = NewSQL(h.dsn); err != nil {
		h.t.Fatal(err)
	}
	h.Corrupter = &Corrupter{nc: nc}
}

func (h *Cluster) workers() {
	h.t.Helper()
	writerNATS, routerNATS, sinkNATS, inserts := h.natsURL, h.natsURL, h.natsURL, h.dsn
	if h.Plan.Proxied {
		h.WriterLink, writerNATS = h.proxy(h.natsURL)
		h.RouterLink, routerNATS = h.proxy(h.natsURL)
		h.SinkLink, sinkNATS = h.proxy(h.natsURL)
		h.InsertLink, inserts = h.proxy(h.dsn)
	}
	for i := range h.Plan.Routers {
		h.Routers = append(h.Routers, h.part(Spec{Role: RoleRouter, Name: fmt.Sprintf("router-%d", i), NATS: routerNATS}))
	}
	for i := range h.Plan.Sinks {
		h.Sinks = append(h.Sinks, h.part(Spec{Role: RoleSink, Name: fmt.Sprintf("sink-%d", i), NATS: sinkNATS, ClickHouse: inserts,
			Linger: h.Plan.Linger, BatchRows: h.Plan.BatchRows, InsertTimeout: h.Plan.InsertTimeout, Keep: h.Plan.Keep, Housekeeping: time.Second}))
	}
	for i, w := range h.Plan.Writers {
		if w.Policy == "" {
			w.Policy = "block"
		}
		w.Topic = Topic
		h.Writers = append(h.Writers, h.part(Spec{Role: RoleProducer, Name: fmt.Sprintf("producer-%d", i), NATS: writerNATS, Writer: w}))
	}
	for i := range h.Plan.Dispatchers {
		h.Dispatchers = append(h.Dispatchers, h.part(Spec{Role: RoleTimers, Name: fmt.Sprintf("timers-%d", i), NATS: h.natsURL}))
	}
	for i := range h.Plan.Rollups {
		h.Rollups = append(h.Rollups, h.part(Spec{Role: RoleRollups, Name: fmt.Sprintf("rollups-%d", i), NATS: h.natsURL, ClickHouse: h.dsn, BatchRows: h.Plan.BatchRows}))
	}
	all := slices.Concat(h.Routers, h.Sinks, h.Dispatchers, h.Rollups)
	for _, p := range all {
		h.start(p)
	}
	for _, p := range all {
		h.ready(p)
	}
}

// StartWriters lets the producers begin.
func (h *Cluster) StartWriters() {
	h.t.Helper()
	for i, w := range h.Writers {
		heir, err := h.heir(w)
		if err != nil {
			h.t.Fatal(err)
		}
		h.mu.Lock()
		h.Writers[i] = heir
		h.mu.Unlock()
	}
	for _, w := range h.Writers {
		h.ready(w)
	}
}

// heir starts a producer like w with numbers and a journal of its own.
func (h *Cluster) heir(w *Part) (*Part, error) {
	spec := w.Spec
	h.nextNumber++
	spec.Writer.Number = h.nextNumber
	spec.Writer.Journal = filepath.Join(h.Dir, "journals", fmt.Sprintf("%d.journal", h.nextNumber))
	next := h.part(spec)
	return next, next.Start()
}

func (h *Cluster) part(spec Spec) *Part { return newPart(filepath.Join(h.Dir, "logs"), spec) }

func (h *Cluster) start(p *Part) {
	h.t.Helper()
	if err := p.Start(); err != nil {
		h.t.Fatal(err)
	}
}

func (h *Cluster) ready(p *Part) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), startWait)
	defer cancel()
	if err := p.Ready(ctx); err != nil {
		h.t.Fatal(err)
	}
}

// proxy puts a Proxy before the address of a URL.
func (h *Cluster) proxy(address string) (*Proxy, string) {
	h.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		h.t.Fatal(err)
	}
	p, err := NewProxy(u.Host)
	if err != nil {
		h.t.Fatal(err)
	}
	u.Host = p.Addr()
	return p, u.String()
}

// Links are the proxies.
func (h *Cluster) Links() []*Proxy {
	if !h.Plan.Proxied {
		return nil
	}
	return []*Proxy{h.WriterLink, h.RouterLink, h.SinkLink, h.InsertLink}
}

// Parts are all that may run now.
func (h *Cluster) Parts() []*Part {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Concat([]*Part{h.NATS, h.Engine}, h.Peers, h.Routers, h.Sinks, h.Dispatchers, h.Rollups, h.Writers)
}

// retired are the producers that were.
func (h *Cluster) retired() []*Part {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.Gone)
}

// leave ends everything, at the end of the test.
func (h *Cluster) leave() {
	for _, p := range append(h.Parts(), h.retired()...) {
		if p != nil && p.current() != nil {
			p.Kill()
		}
	}
	if h.NC != nil {
		h.NC.Close()
	}
	for _, l := range h.Links() {
		if l != nil {
			l.Close()
		}
	}
	if h.t.Failed() {
		for _, p := range h.Parts() {
			if p != nil {
				h.t.Logf("last words of %s:\n%s", p.Spec.Name, p.Words())
			}
		}
	}
}
