package syslog

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/pool"
)

// kernelEvery is how often the kernel is asked what it dropped: a scrape is rarer.
const kernelEvery = time.Second

// kernel counts the datagrams of a socket that the kernel drops: those for which its buffer has no room, and damaged ones.
type kernel struct {
	in *Input
	of *net.UDPConn

	mu   sync.Mutex
	seen uint32
}

// watch counts until ctx ends.
func (k *kernel) watch(ctx context.Context) {
	tick := time.NewTicker(kernelEvery)
	defer tick.Stop()
	for {
		k.count()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// count tells of what was dropped since the last time, or since the socket was opened. A system that does not say it counts nothing.
func (k *kernel) count() {
	k.mu.Lock()
	defer k.mu.Unlock()
	drops, room, err := kernelDrops(k.of)
	n := drops - k.seen // it goes on from 0 after the largest number
	if err != nil || n == 0 {
		return
	}
	k.seen = drops
	k.in.stats.dropped.Add(uint64(n))
	k.in.tell(pool.LostKernel, int(n))
	k.in.cfg.OnError(fmt.Errorf("syslog: the kernel dropped %d datagrams for %s, since its buffer of %d KiB was full: where net.core.rmem_max is below %d, raise it",
		n, k.of.LocalAddr(), room>>10, kernelBytes))
}
