package registry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Members shares work among the live processes of one role. Each member renews
// a lease; a key belongs to the live member that hashes highest with it
// (rendezvous hashing), so that a member's coming or going moves only its share.
type Members struct {
	reg  *Registry
	role string
	self string
	// sawUpTo is the revision up to which the topics were read (seen.go).
	sawUpTo atomic.Uint64

	mu   sync.Mutex
	live []string

	// The rest is the beating goroutine's.
	seen       map[string]lease // other members
	surveyed   time.Time        // when the leases were last read
	reconnects uint64           // of the connection, then
	endpoint   *nats.Subscription

	changed chan struct{}
}

// A member whose process died is missed two beats later, because no process
// answers a probe; one that is frozen or cut off, whose subject may still have a subscriber,
// after LeaseExpiry + LeasePeriod at the latest. Ten seconds until events flow
// again is the promise.
const (
	LeasePeriod = time.Second
	LeaseExpiry = 5 * time.Second
	// forgetAfter is when NATS lets go of a lease that was not renewed.
	forgetAfter = time.Minute
	// beatTime bounds a beat: on a busy disk a write may take longer than a period.
	beatTime = 2 * time.Second
	// probeTimeout bounds the wait for an answer; that there is no subscriber is
	// reported at once.
	probeTimeout = 300 * time.Millisecond
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

// answer subscribes to this member's subject and answers probes there. Where the
// account may not subscribe, its lease alone speaks for it.
func (m *Members) answer() {
	if m.endpoint != nil {
		return
	}
	m.endpoint, _ = m.reg.js.Conn().Subscribe(schemas.MemberSubject(m.role, m.self), func(msg *nats.Msg) { _ = msg.Respond(nil) })
}

// unreachable reports whether it is certain that no process subscribes to a member's
// subject. A missing answer does not prove that.
func (m *Members) unreachable(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := m.reg.js.Conn().RequestWithContext(ctx, schemas.MemberSubject(m.role, name), nil)
	return errors.Is(err, nats.ErrNoResponders)
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
			if m.endpoint != nil {
				_ = m.endpoint.Unsubscribe()
			}
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
	ctx, cancel := context.WithTimeout(ctx, beatTime)
	defer cancel()
	m.answer()
	lease := schemas.KVSubject(schemas.LeaseKey(m.role, m.self))
	if _, err := m.reg.js.Publish(ctx, lease, []byte(m.leaseValue()), jetstream.WithMsgTTL(forgetAfter)); err != nil {
		return
	}
	leases, err := m.read(ctx)
	if err != nil {
		return
	}
	now, reconnects := time.Now(), m.reg.js.Conn().Stats().Reconnects
	blind := blindFor(m.surveyed, now, reconnects != m.reconnects)
	m.surveyed, m.reconnects = now, reconnects
	live, silent := survey(m.self, m.seen, leases, now, blind)
	for _, name := range silent {
		if m.unreachable(ctx, name) {
			l := m.seen[name]
			l.gone = true
			m.seen[name] = l
			live = slices.DeleteFunc(live, func(n string) bool { return n == name })
		}
	}
	m.mu.Lock()
	moved := !slices.Equal(live, m.live)
	m.live = live
	m.mu.Unlock()
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
	var leases []string
	err := r.scan(ctx, schemas.AllLeases, func(key string, _ uint64, _ []byte) error {
		leases = append(leases, key)
		return nil
	})
	for _, key := range leases {
		if err == nil {
			err = r.forget(ctx, key)
		}
	}
	return err
}

// forget takes an entry out of the bucket. It writes over it that there is none, which NATS then lets go of too: a part
// that may purge an entry may purge them all. A full bucket takes nothing more; there the entry is purged, by who may.
func (r *Registry) forget(ctx context.Context, key string) error { return r.forgetAt(ctx, key, 0) }

// forgetAt is forget of an entry as it was read, at a revision; 0: however it is. One that another process has written since stays, and that is well.
func (r *Registry) forgetAt(ctx context.Context, key string, rev uint64) error {
	how, upTo := []jetstream.PublishOpt{jetstream.WithMsgTTL(streams.Expiring)}, []jetstream.StreamPurgeOpt(nil)
	if rev > 0 {
		how, upTo = append(how, jetstream.WithExpectLastSequencePerSubject(rev)), append(upTo, jetstream.WithPurgeSequence(rev+1))
	}
	m := nats.NewMsg(schemas.KVSubject(key))
	m.Header.Set("KV-Operation", "PURGE")
	_, err := streams.Asked(ctx, r.js.Conn(), func(ctx context.Context) (*jetstream.PubAck, error) {
		return r.js.PublishMsg(ctx, m, how...)
	})
	if rev > 0 && streams.LostRace(err) {
		return nil
	}
	if streams.Full(err) {
		var in jetstream.Stream
		if in, err = streams.Open(ctx, r.js, schemas.KVStream); err == nil {
			err = streams.PurgeWith(ctx, r.js, in, schemas.KVSubject(key), streams.Unneeded, upTo...) // as any write to the bucket, which a copy reads until it has all
		}
	}
	if err != nil {
		return fmt.Errorf("registry: forgetting %s: %w", key, err)
	}
	return nil
}
