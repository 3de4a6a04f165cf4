package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A request of 5,000 events over three months under one Idempotency-Key, sent 50 times by 8 clients while NATS and the
// gateway are killed, is stored once: some tries are cut off in the middle, others are answered by another gateway than
// the one that took them.
func TestKillCyclesOfKeyedRequest(t *testing.T) {
	const clients, tries, events = 8, 50, 5000
	h := Build(t, Plan{})
	g := &gatewayProcess{h: h, program: command(t), address: embeddedtest.FreeAddress(t)}
	g.start(t)
	t.Cleanup(func() {
		if g.kill(); t.Failed() {
			t.Logf("the gateway said: %s", g.said.String())
		}
	})
	var body strings.Builder
	for i := range events {
		fmt.Fprintf(&body, "{\"ts\":\"2026-%02d-03T10:00:00Z\",\"user_id\":\"u%d\",\"message\":\"%d\"}\n", 8+i%3, i%11, i)
	}
	url := "http://" + g.address + "/v1/topics/" + Topic + "/events?refuse=all"
	var next, answered, repeated, cut atomic.Int64
	all, ctx := errgroup.WithContext(t.Context())
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	some := make(chan struct{}, 3*tries) // one for each try that ended somehow
	for range clients {
		all.Go(func() error {
			for next.Add(1) <= tries {
				for done := false; !done; {
					again, err := keyed(ctx, url, body.String(), &repeated)
					if err != nil {
						return err
					}
					select {
					case some <- struct{}{}:
					default:
					}
					if done = !again; again {
						cut.Add(1)
						_ = backoff.Sleep(ctx, 50*time.Millisecond) // the next try asks ctx
					}
				}
				answered.Add(1)
			}
			return nil
		})
	}
	// Each is killed twice, while tries are under way: the next kill comes once two more ended.
	for _, kill := range []func(){g.kill, h.NATS.Kill, g.kill, h.NATS.Kill} {
		for range 2 {
			select {
			case <-some:
			case <-ctx.Done():
				t.Fatal(context.Cause(ctx))
			}
		}
		kill()
		if !h.NATS.Alive() {
			h.start(h.NATS)
			h.ready(h.NATS)
		} else {
			g.start(t)
		}
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tries answered, %d of them as repeated, %d cut off or refused; most resident memory of a gateway %d MiB", answered.Load(), repeated.Load(), cut.Load(), g.peak>>20)
	if answered.Load() != tries || repeated.Load() == 0 {
		t.Errorf("%d of %d tries were answered, %d as repeated", answered.Load(), tries, repeated.Load())
	}
	report := h.Drain(5 * time.Minute)
	if !report.OK() {
		t.Errorf("verify: %+v", report)
	}
	for what, want := range map[string]uint64{"count()": events, "uniqExact(message)": events, "uniqExact(toYYYYMM(ts))": 3} {
		await(t, startWait, func(ctx context.Context) error {
			got, err := h.SQL.Number(ctx, "SELECT %s FROM %s", what, Topic)
			if err == nil && got != want {
				err = fmt.Errorf("%s is %d, want %d", what, got, want)
			}
			return err
		})
	}
}

// keyed sends the request once. again says that it was not answered, or that nothing of it may be taken now.
func keyed(ctx context.Context, url, body string, repeated *atomic.Int64) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("Idempotency-Key", "one and the same")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ctx.Err() == nil, context.Cause(ctx)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return ctx.Err() == nil, context.Cause(ctx)
	}
	var a struct {
		Accepted int
		Repeated bool
	}
	switch resp.StatusCode {
	case http.StatusOK:
		if err := json.Unmarshal(text, &a); err != nil || a.Accepted != strings.Count(body, "\n") {
			return false, fmt.Errorf("200 with %.300s (%w)", text, err)
		}
		if a.Repeated {
			repeated.Add(1)
		}
		return false, nil
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return true, nil
	}
	return false, fmt.Errorf("%s: %.300s", resp.Status, text)
}

// gatewayProcess is an `almanac gateway`, over all its lives.
type gatewayProcess struct {
	h                *Cluster
	program, address string
	cmd              *exec.Cmd
	said             bytes.Buffer // of its last life
	peak             uint64
}

// start runs it until it answers.
func (g *gatewayProcess) start(t *testing.T) {
	t.Helper()
	g.said.Reset()
	g.cmd = exec.Command(g.program, "gateway", "--http", g.address, "--otlp-http", "off", "--otlp-grpc", "off", "--log-format", "json")
	g.cmd.Env = append(os.Environ(), "ALMANAC_NATS="+g.h.natsURL, "ALMANAC_CLICKHOUSE="+g.h.dsn, "HOME="+t.TempDir())
	g.cmd.Stdout, g.cmd.Stderr = &g.said, &g.said
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, startWait, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.address+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New("the gateway is not ready: " + resp.Status)
		}
		return nil
	})
}

// kill ends it by SIGKILL and waits until it is gone.
func (g *gatewayProcess) kill() {
	g.peak = max(g.peak, peakMemory(g.cmd.Process.Pid))
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
}
