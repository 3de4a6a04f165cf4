package registry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// Members shares work among the live processes of one role. Each member renews
// a lease; a key belongs to the live member that hashes highest with it
// (rendezvous hashing), so that a member's coming or going moves only its share.
type Members struct {
	reg  *Registry
	role string
	self string

	mu   sync.Mutex
	seen map[string]lease // other members
	live []string

	changed chan struct{}
}

// lease is what this process saw of another's: the revision, and when it last
// changed on this process's own clock. No clock of another is ever compared.
type lease struct {
	rev uint64
	at  time.Time
}

// A dead member is missed after LeaseExpiry + LeasePeriod at the latest; ten
// seconds is the promise, and a start takes part of it.
const (
	LeasePeriod = 1500 * time.Millisecond
	LeaseExpiry = 5 * time.Second
	// forgetAfter is when a dead member's key is deleted.
	forgetAfter = time.Minute
)

// Join makes this process a member and looks who else is; Run keeps it one.
func (r *Registry) Join(ctx context.Context, role string) *Members {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails on the supported systems
	self := hex.EncodeToString(b[:])
	m := &Members{reg: r, role: role, self: self, seen: map[string]lease{}, live: []string{self}, changed: make(chan struct{}, 1)}
	m.beat(ctx)
	return m
}

// Self is this member's name.
func (m *Members) Self() string { return m.self }

// Changed receives after the set of live members changed.
func (m *Members) Changed() <-chan struct{} { return m.changed }

// Live are the live members, this one among them.
func (m *Members) Live() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live
}

// Owns says whether key is this member's share of the work.
func (m *Members) Owns(key string) bool { return owner(m.Live(), key) == m.self }

// Run renews the lease until ctx ends, then gives it back. A renewal that fails
// is tried again: not being seen costs a handover, never an event.
func (m *Members) Run(ctx context.Context) error {
	tick := time.NewTicker(LeasePeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = m.reg.forget(leave, schemas.LeaseKey(m.role, m.self))
			return nil
		case <-tick.C:
			m.beat(ctx)
		}
	}
}

func (m *Members) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, LeasePeriod)
	defer cancel()
	if _, err := m.reg.kv.PutString(ctx, schemas.LeaseKey(m.role, m.self), "{}"); err != nil {
		return
	}
	leases, err := m.read(ctx)
	if err != nil {
		return
	}
	m.mu.Lock()
	live, dead := survey(m.self, m.seen, leases, time.Now())
	moved := !slices.Equal(live, m.live)
	m.live = live
	m.mu.Unlock()
	for _, name := range dead {
		_ = m.reg.forget(ctx, schemas.LeaseKey(m.role, name))
	}
	if moved {
		select {
		case m.changed <- struct{}{}:
		default:
		}
	}
}

// read lists the leases of the role with their revisions, in one request and
// without a watcher: watchers can fall silent after a reconnect.
func (m *Members) read(ctx context.Context) (map[string]uint64, error) {
	out := map[string]uint64{}
	prefix := len(schemas.LeaseKeys(m.role)) - 1
	err := m.reg.scan(ctx, schemas.LeaseKeys(m.role), func(key string, rev uint64, _ []byte) error {
		out[key[prefix:]] = rev
		return nil
	})
	return out, err
}

// ForgetMembers drops all leases. Who starts a NATS server by himself knows that
// every lease in it is of a process that ended with the last one, and need not
// wait for them to expire. A member that lives after all is back in LeasePeriod.
func (r *Registry) ForgetMembers(ctx context.Context) error {
	return r.forget(ctx, schemas.AllLeases)
}

// forget takes keys out of the bucket without a trace. A KV purge would leave a
// marker for each member there ever was.
func (r *Registry) forget(ctx context.Context, filter string) error {
	s, err := r.js.Stream(ctx, schemas.KVStream)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(schemas.KVSubject(filter)))
	}
	if err != nil {
		return fmt.Errorf("registry: forgetting %s: %w", filter, err)
	}
	return nil
}

// survey updates what was seen of the others and says who is alive and whose
// key to delete.
func survey(self string, seen map[string]lease, leases map[string]uint64, now time.Time) (live, dead []string) {
	for name := range seen {
		if _, ok := leases[name]; !ok {
			delete(seen, name)
		}
	}
	live = []string{self}
	for name, rev := range leases {
		if name == self {
			continue
		}
		if l, ok := seen[name]; !ok || l.rev != rev {
			seen[name] = lease{rev: rev, at: now}
		}
		switch age := now.Sub(seen[name].at); {
		case age < LeaseExpiry:
			live = append(live, name)
		case age > forgetAfter:
			dead = append(dead, name)
		}
	}
	slices.Sort(live)
	return live, dead
}

// owner is the member that hashes highest with key.
func owner(live []string, key string) string {
	var best string
	var top uint64
	for _, name := range live {
		if w := weight(name, key); best == "" || w > top || w == top && name > best {
			best, top = name, w
		}
	}
	return best
}

// weight is FNV-1a 64 of name and key, finished as SplitMix64 is, because FNV's
// high bits hardly move with the last bytes.
func weight(name, key string) uint64 {
	h := uint64(14695981039346656037)
	for _, s := range []string{name, "/", key} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
