package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/gateway/api"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/ops/families"
	"github.com/almanac-events/almanac/internal/ops/metrics"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	querytimers "github.com/almanac-events/almanac/internal/query/timers"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/timers"
	"github.com/nats-io/nats.go"
)

// pool makes the producers of a gateway, over a connection of its own.
func (e *env) pool() (*nats.Conn, *registry.Registry, *pool.Pool) {
	e.t.Helper()
	nc := e.connect()
	reg := e.registry(nc)
	p, err := pool.New(pool.Config{NC: nc, Topic: reg.Topic, Erased: reg.ErasedSince})
	if err != nil {
		e.t.Fatal(err)
	}
	return nc, reg, p
}

// gateway runs one over connections of its own, and returns its address.
func (e *env) gateway(with ...func(*gateway.Config)) (base string, stop func()) {
	e.t.Helper()
	nc, reg, p := e.pool()
	r, err := query.NewFollowing(nc, e.connect(), reg, e.openAs(access.UserGateway))
	if err != nil {
		e.t.Fatal(err)
	}
	reads := api.Config{
		Reader: r, Registry: reg, OnError: func(err error) { e.logf("jobs: %v", err) },
		User: embedded.UserReader, Password: e.srv.Engine.ReaderPassword(),
	}
	v, err := verify.New(nc, reg, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	reads.Verify = func(ctx context.Context, topic string, tell func(shards, of int)) (*verify.Report, error) {
		return v.Telling(tell).Run(ctx, topic)
	}
	if reads.Replayer, err = replay.New(e.t.Context(), replay.Config{NATS: nc, Registry: reg, DB: e.db, Reader: r}); err != nil {
		e.t.Fatal(err)
	}
	if reads.Letters, err = deadletters.New(e.t.Context(), nc, reg, nil, e.db); err != nil {
		e.t.Fatal(err)
	}
	reads.Timers = func(ctx context.Context, topic string) (*timers.Timers, error) {
		return timers.Open(ctx, nc, reg, topic, timers.Config{Archive: &querytimers.Archive{DB: e.db}})
	}
	numbers := metrics.New(metrics.Config{})
	numbers.Read(families.Timers(reg, reads.Timers))
	reads.Metrics = numbers.Handler()
	reads.Documents = func(ctx context.Context, topic string) (*documents.Collection, error) {
		return documents.Open(ctx, nc, topic, documents.Config{By: "http", Archive: archive.New(reg, e.db)})
	}
	reads.Eraser = func(ctx context.Context, progress func(erasure.Progress)) (*erasure.Eraser, error) {
		return erasure.New(ctx, erasure.Config{Registry: reg, Reader: r, DB: e.db, Progress: progress})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.t.Fatal(err)
	}
	cfg := gateway.Config{HTTP: l, Grace: 5 * time.Second, OnError: func(err error) { e.logf("gateway: %v", err) }}
	for _, f := range with {
		f(&cfg)
	}
	g := gateway.New(cfg)
	g.Open(gateway.Parts{Pool: p, Reads: reads, Background: []func(context.Context) error{r.Run}, Stored: func(ctx context.Context, topics []string) error {
		_, err := r.WaitStored(ctx, topics, time.Minute, nil)
		return err
	}})
	return "http://" + l.Addr().String(), e.background(g.Run)
}

// caller sends requests that the contract holds to the specification.
type caller struct {
	t    *testing.T
	base string
	http *http.Client
}

// send sends one and returns its answer, which must have the status.
func (c *caller) send(status int, method, path, body string, header ...string) []byte {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if strings.HasPrefix(body, "{") {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		c.t.Fatalf("%s %s: %d, want %d: %s (%v)", method, path, resp.StatusCode, status, got, err)
	}
	return got
}

func (c *caller) get(path string) []byte {
	c.t.Helper()
	return c.send(http.StatusOK, http.MethodGet, path, "")
}

// job waits until a job has ended and returns what it came to.
func (c *caller) job(answer []byte) (result json.RawMessage) {
	c.t.Helper()
	var j struct {
		ID, State, Error string
		Result           json.RawMessage
	}
	_ = json.Unmarshal(answer, &j)
	eventually(c.t, 2*time.Minute, func() error {
		if err := json.Unmarshal(c.get("/v1/jobs/"+j.ID), &j); err != nil {
			return err
		}
		if j.State != "done" {
			return fmt.Errorf("job %s is %s: %s", j.ID, j.State, j.Error)
		}
		return nil
	})
	return j.Result
}

func holds(t *testing.T, answer []byte, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !bytes.Contains(answer, []byte(text)) {
			t.Errorf("%q is not in %.600s", text, answer)
		}
	}
}

// stored waits until SQL has what was accepted.
func (c *caller) stored() {
	c.t.Helper()
	eventually(c.t, 2*time.Minute, func() error {
		var lag query.LagReport
		if err := json.Unmarshal(c.get("/v1/lag?topic=app"), &lag); err != nil {
			return err
		}
		if l := lag.Topics[0]; l.Unstored == nil || l.Unrouted+*l.Unstored > 0 {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
}
