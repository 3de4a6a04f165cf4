package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
)

// intrudedHeader marks what Intrude published.
const intrudedHeader = "Fault-Intruded"

// Intrude publishes junk where only parts of Almanac publish: on a shard's own subject, beside it, on a lane's checkpoints. As
// what Damage publishes, it must become one dead letter, whole.
func (v *Corrupter) Intrude(ctx context.Context, rnd *rand.Rand) error {
	js, err := jetstream.New(v.nc)
	if err != nil {
		return err
	}
	s, err := js.Stream(ctx, "SHARDS")
	if err != nil {
		return err
	}
	subjects := []string{"shards.nosuch.2026-11.0000000000000001", "shards.junk", "routed." + Topic + ".2026-11.0", "routed.nosuch.2026-11.3"}
	if last, err := s.GetLastMsgForSubject(ctx, "shards."+Topic+".>"); err == nil {
		subjects = append(subjects, last.Subject)
	}
	v.mu.Lock()
	v.n++
	n := v.n
	v.mu.Unlock()
	bad := nats.NewMsg(subjects[rnd.IntN(len(subjects))])
	bad.Header.Set(intrudedHeader, "1")
	bad.Data = fmt.Appendf(nil, "intruded %d", n)
	return v.remembered(ctx, bad, "junk on "+bad.Subject, fmt.Sprintf("intruded-%d", n))
}

// intrusion intrudes until ctx ends.
func (h *Cluster) intrusion(ctx context.Context, rnd *rand.Rand, every time.Duration) {
	for backoff.Sleep(ctx, Between(rnd, every/2, every)) == nil {
		h.corrupters.RLock()
		_ = h.Corrupter.Intrude(ctx, rnd) // what had no answer is not counted on
		h.corrupters.RUnlock()
	}
}

// strangers ask the engine, without a password, for many statements that take long, and hold connections to both of its
// ports without a word.
func (h *Cluster) strangers(ctx context.Context, statements, connections int, lasts time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var all sync.WaitGroup
	for range statements {
		all.Go(func() {
			ask := fmt.Sprintf("http://127.0.0.1:%d/?query=%s", h.Engine.Spec.HTTPPort, url.QueryEscape("SELECT sleepEachRow(1) FROM numbers(60) SETTINGS max_block_size = 1"))
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, ask, nil)
			if err != nil {
				return
			}
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	var dialer net.Dialer
	for i := range connections {
		port := []int{h.Engine.Spec.Port, h.Engine.Spec.HTTPPort}[i%2]
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			break // the engine may be down
		}
		defer func() { _ = conn.Close() }()
	}
	<-ctx.Done()
	all.Wait()
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return nil
	}
	return context.Cause(ctx)
}
