package faults

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// ClickHouse stands still until both streams are full, while eight clients send a megabyte at a time to a gateway: each
// is told so before its patience ends, what was accepted is stored once when ClickHouse goes on, and the gateway's
// memory stays within its bound.
func TestGatewayOfFullStreams(t *testing.T) {
	const clients, lines, most = 8, 250, 400 << 20
	h := Build(t, Plan{Limits: schemas.StreamLimits{EventsBytes: 48 << 20, ShardsBytes: 48 << 20, RegistryBytes: 16 << 20, Replicas: 1}})
	g := &gatewayProcess{h: h, program: command(t), address: embeddedtest.FreeAddress(t)}
	g.start(t)
	t.Cleanup(g.kill)
	h.Engine.Stop()
	t.Cleanup(h.Engine.Continue)
	var accepted, unknown atomic.Int64
	all, ctx := errgroup.WithContext(t.Context())
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for n := range clients {
		all.Go(func() error {
			random := rand.NewChaCha8([32]byte{byte(n)})
			text := make([]byte, 2000)
			for i := 0; ; i++ {
				var body strings.Builder
				for k := range lines {
					_, _ = random.Read(text)
					fmt.Fprintf(&body, "{\"message\":\"%d-%d-%d\",\"text\":%q}\n", n, i, k, hex.EncodeToString(text))
				}
				began := time.Now()
				status, answer, err := post(ctx, "http://"+g.address+"/v1/topics/"+Topic+"/events?refuse=all", body.String())
				switch {
				case err != nil:
					return err
				case status == http.StatusOK:
					accepted.Add(lines)
				case status == http.StatusServiceUnavailable && strings.Contains(answer, `"outcome_unknown"`):
					unknown.Add(lines)
				case status == http.StatusServiceUnavailable && strings.Contains(answer, `"stalled"`):
					t.Logf("client %d was refused after %s", n, time.Since(began).Round(100*time.Millisecond))
					return nil
				default:
					return fmt.Errorf("%d %.300s", status, answer)
				}
			}
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	peak := peakMemory(g.cmd.Process.Pid)
	t.Logf("%d events of 4 KB were accepted, %d more have an unknown outcome; resident memory of the gateway at most %d MiB", accepted.Load(), unknown.Load(), peak>>20)
	if peak > most {
		t.Errorf("the gateway had %d MiB resident, want %d at most", peak>>20, most>>20)
	}
	h.Engine.Continue()
	if report := h.Drain(5 * time.Minute); !report.OK() {
		t.Errorf("verify: %+v", report)
	}
	await(t, startWait, func(ctx context.Context) error {
		rows, err := h.SQL.Number(ctx, "SELECT count() FROM %s", Topic)
		if err != nil {
			return err
		}
		different, err := h.SQL.Number(ctx, "SELECT uniqExact(message) FROM %s", Topic)
		if err == nil && (rows != different || rows < uint64(accepted.Load()) || rows > uint64(accepted.Load()+unknown.Load())) {
			err = fmt.Errorf("%d rows of %d events, of which %d were accepted and %d may be", rows, different, accepted.Load(), unknown.Load())
		}
		return err
	})
}

// post sends lines and returns the status and the answer.
func post(ctx context.Context, url, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}
