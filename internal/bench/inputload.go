package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// inputClient sends the requests of one input.
type inputClient struct {
	in     *input
	url    string
	bodies [][]byte
	http   *http.Client
	run    string // begins every key, so that no two runs share one
	sent   atomic.Int64
}

// maxWaiting bounds the requests of an open schedule that are under way. With latencies at
// the bar, 150 ms, it is reached at 6,800 requests a second, far above half load. A request
// that waits for its turn is late by that too.
const maxWaiting = 1024

func newInputClient(in *input, base string, bodies [][]byte, connections int) *inputClient {
	return &inputClient{
		in: in, url: base + in.path, bodies: bodies, run: "bench " + strconv.FormatInt(time.Now().UnixNano(), 36),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: max(connections, maxWaiting)}},
	}
}

// close ends the connections.
func (c *inputClient) close() { c.http.CloseIdleConnections() }

// send sends one request, all of whose events must be taken.
func (c *inputClient) send(ctx context.Context) error {
	n := int(c.sent.Add(1))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(c.bodies[n%len(c.bodies)]))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", c.in.contentType)
	if c.in.keyed {
		req.Header.Set("Idempotency-Key", c.run+" "+strconv.Itoa(n))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("bench: %s: %w", c.in.what, err)
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode/100 != 2 || !bytes.Contains(answer, []byte(c.in.good)) {
		return fmt.Errorf("bench: %s answered %s: %.300q (%w)", c.in.what, resp.Status, strings.TrimSpace(string(answer)), err)
	}
	return nil
}

// flood sends so many requests over so many connections at once, and returns how long
// that took.
func (c *inputClient) flood(ctx context.Context, requests, connections int) (time.Duration, error) {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for range connections {
		g.Go(func() error {
			for next.Add(1) <= int64(requests) {
				if err := c.send(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return time.Since(began), err
}

// paced sends so many requests a second for a time, on a schedule that does not wait for
// answers. Each latency is from the instant the schedule had the request until its answer.
func (c *inputClient) paced(ctx context.Context, perSecond float64, lasts time.Duration) (samples, error) {
	var mu sync.Mutex
	var all samples
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxWaiting)
	tick := time.NewTicker(paceTick)
	defer tick.Stop()
	began := time.Now()
	for n := 0; time.Since(began) < lasts && ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		for due := int(time.Since(began).Seconds() * perSecond); n < due; n++ {
			planned := began.Add(time.Duration(float64(n) / perSecond * float64(time.Second)))
			g.Go(func() error {
				err := c.send(ctx)
				took := time.Since(planned)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, took)
				return err
			})
		}
	}
	err := g.Wait()
	return all, err
}
