package pool

import (
	"net/netip"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/almanac-events/almanac/internal/access"
)

// peers bounds what the requests of one address may hold together: half of what all may,
// so that one sender of large or slow bodies leaves room for the others.
type peers struct {
	mu   sync.Mutex
	each int64
	by   map[string]*peer
}

// peer is an address that has requests under way.
type peer struct {
	bytes    *semaphore.Weighted
	requests int
}

func newPeers(inFlight int64) *peers {
	return &peers{each: max(inFlight/2, 1), by: map[string]*peer{}}
}

// borrow counts a request of an address. Give it back.
func (p *peers) borrow(address string) *peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.by[address]
	if one == nil {
		one = &peer{bytes: semaphore.NewWeighted(p.each)}
		p.by[address] = one
	}
	one.requests++
	return one
}

func (p *peers) giveBack(address string, one *peer, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.bytes.Release(bytes)
	if one.requests--; one.requests == 0 {
		delete(p.by, address)
	}
}

// PeerOf returns what bounds count by as one client: the address of a connection without its port, and of IPv6 the /64,
// which one host has whole. It is "" for this machine's own programs, of which many share one address: only the
// bound on all requests holds for them.
func PeerOf(remote string) string {
	from, err := netip.ParseAddrPort(remote)
	if err != nil || from.Addr().Unmap().IsLoopback() {
		return ""
	}
	peer := access.Network(from.Addr())
	if peer.Is6() {
		return peer.String() + "/64"
	}
	return peer.String()
}
