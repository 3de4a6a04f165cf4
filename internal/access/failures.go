package access

import (
	"net/netip"
	"time"
)

// Bounds on wrong secrets of one peer: who tries more than a person would, waits.
const (
	failuresFree = 10          // a minute, without a wait
	failuresSpan = time.Minute // after which they are forgotten
	FailureWait  = time.Second // how long each further answer waits
	maxPeers     = 10_000      // of which failures are remembered: 400 KiB
)

// Failures counts wrong secrets by peer. It is not for use by several goroutines.
type Failures struct {
	peers  map[netip.Addr]*failures
	looked time.Time // when what is past was last looked for
}

type failures struct {
	n    int
	from time.Time
}

// Add counts a wrong secret of a peer, and returns how long its answer waits. A peer beyond the bound on peers waits.
func (f *Failures) Add(peer netip.Addr, now time.Time) time.Duration {
	peer = Network(peer)
	if f.peers == nil {
		f.peers = map[netip.Addr]*failures{}
	}
	p := f.peers[peer]
	if p == nil || now.Sub(p.from) >= failuresSpan {
		if p == nil && len(f.peers) >= maxPeers {
			f.forget(now)
		}
		if p == nil && len(f.peers) >= maxPeers {
			return FailureWait
		}
		p = &failures{from: now}
		f.peers[peer] = p
	}
	if p.n++; p.n <= failuresFree {
		return 0
	}
	return FailureWait
}

// forget drops what is past. It looks once a second: many peers must not make each look at all of them.
func (f *Failures) forget(now time.Time) {
	if now.Sub(f.looked) < time.Second {
		return
	}
	f.looked = now
	for peer, p := range f.peers {
		if now.Sub(p.from) >= failuresSpan {
			delete(f.peers, peer)
		}
	}
}

// Network is what counts as one peer: an address of IPv4, or the /64 of IPv6, which one host has whole.
func Network(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.Is6() {
		return a
	}
	p, err := a.WithZone("").Prefix(64)
	if err != nil {
		return a
	}
	return p.Addr()
}
