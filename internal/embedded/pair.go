package embedded

import (
	"context"
	"os"
	"runtime/debug"
	"sync"
)

// Pair is a NATS and a ClickHouse that start and end together.
type Pair struct {
	// NATS is nil where it runs elsewhere.
	NATS       *NATS
	ClickHouse *ClickHouse

	cancel context.CancelFunc
	wg     sync.WaitGroup
	failed chan error // one that NATS.Run returned
}

// natsGCPercent is how much the heap of a process with a NATS in it may grow between two
// collections. Most of it are frames under way and what the server keeps of its blocks,
// bytes without a pointer, so collecting is cheap; memory that was never touched before
// is not. With ten topics at full load: of Go's usual 100 the process came to 1,340 to
// 1,580 MiB and NATS took 1.4 to 1.9 microseconds of CPU an event, of 50 to 1,050 to
// 1,090 MiB and 1.1 to 1.3; collecting took 0.05 and 0.08. 25 saves 200 MiB more, and
// collecting takes 0.2.
const natsGCPercent = 50

// StartPair starts both servers at once and returns when both answer; ctx ends no more
// than the wait. With a NATS it sets the process's GC percentage, unless GOGC does.
func StartPair(ctx context.Context, n *NATS, c *ClickHouse) (*Pair, error) {
	p := &Pair{NATS: n, ClickHouse: c, failed: make(chan error, 1)}
	// Not ctx: the servers must outlive the parts that a signal ends first.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	waits := []func(context.Context) error{c.WaitReady}
	if n != nil {
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(natsGCPercent)
		}
		p.wg.Go(func() {
			if err := n.Run(running); err != nil { // of a failed start WaitReady returns it too
				p.failed <- err
			}
		})
		waits = append(waits, n.WaitReady)
	}
	p.wg.Go(func() { _ = c.Run(running) })
	ready := make(chan error, len(waits))
	for _, w := range waits {
		go func() { ready <- w(ctx) }()
	}
	for range waits {
		if err := <-ready; err != nil {
			p.Stop()
			return nil, err
		}
	}
	return p, nil
}

// Run returns the error of a server that cannot go on in this process, or nil when ctx ends.
func (p *Pair) Run(ctx context.Context) error {
	select {
	case err := <-p.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Stop ends both and waits; the engine bounds how long that takes.
func (p *Pair) Stop() {
	p.cancel()
	p.wg.Wait()
}
