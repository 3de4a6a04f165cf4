package syslog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of the input, beside those of its listeners.
const (
	// MaxConnections of one listener.
	MaxConnections = 256
	// Idle is after how long in which nothing came a connection is ended where another has no room. It is not ended before that: a sender
	// that writes into a connection which the other side has closed loses what it writes, and many have nothing to say for hours.
	Idle = 5 * time.Minute
	// StreamBytes and PacketBytes bound the events that were read and not taken yet.
	StreamBytes = 8 << 20
	PacketBytes = 4 << 20
	// queueEvents bounds them in number: as many as fill PacketBytes at 256 bytes each.
	queueEvents = 16 << 10
	// A batch has at most these.
	batchEvents = 2000
	batchBytes  = 1 << 20
	// retryPause is how long the input waits after a refusal that needs no waiting of its
	// own, such as an unknown topic.
	retryPause = time.Second
)

// Config of the input. Pool and Topic are required.
type Config struct {
	Pool *pool.Pool
	// Topic takes every message.
	Topic string
	// Location is the zone of stamps without one; nil: UTC.
	Location *time.Location
	// Now is time.Now where nil.
	Now func() time.Time
	// OnError hears why messages wait or are lost. It may be called often.
	OnError func(error)
	// OnLimit hears of connections and datagrams that a bound refuses; it may be nil.
	OnLimit func(what, why string)
}

// Input takes messages from listeners. Run gives them to the pool.
type Input struct {
	cfg     Config
	streams *queue
	packets *queue
	stats   counters
}

// Stats counts messages since the start.
type Stats struct {
	Taken   uint64 // by the producer, which goes on sending them
	Dropped uint64 // datagrams for which there was no room, here or in the kernel, and what was left at the end
	Refused uint64 // by a limit of the topic, and datagrams from elsewhere than Allow
	Whole   uint64 // kept whole, because they do not parse
}

type counters struct{ taken, dropped, refused, whole atomic.Uint64 }

// New prepares the input.
func New(cfg Config) *Input {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	if cfg.OnLimit == nil {
		cfg.OnLimit = func(string, string) {}
	}
	return &Input{cfg: cfg, streams: newQueue(queueEvents, StreamBytes), packets: newQueue(queueEvents, PacketBytes)}
}

// Stats returns the counts.
func (in *Input) Stats() Stats {
	return Stats{in.stats.taken.Load(), in.stats.dropped.Load(), in.stats.refused.Load(), in.stats.whole.Load()}
}

// Listeners are where messages come from; nil ones are off. A stream listener may be
// one of TLS. Each must bound its connections.
type Listeners struct {
	Streams []net.Listener
	Packets []net.PacketConn
	// Allow are the networks that messages are taken from beside this machine; none: any.
	Allow []netip.Prefix
}

// Allows reports whether messages are taken from an address.
func (l *Listeners) Allows(from net.Addr) bool {
	if len(l.Allow) == 0 {
		return true
	}
	a, err := netip.ParseAddr(host(from))
	if err != nil {
		return false
	}
	a = a.Unmap().WithZone("")
	return a.IsLoopback() || slices.ContainsFunc(l.Allow, func(n netip.Prefix) bool { return n.Contains(a) })
}

// Run reads until ctx ends, and then gives the pool what was read, within grace. It
// closes the listeners. Its error is that of a listener that failed before.
func (in *Input) Run(ctx context.Context, l Listeners, grace time.Duration) error {
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	giving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var readers, givers sync.WaitGroup
	for _, s := range l.Streams {
		readers.Go(func() {
			if err := in.serveStreams(reading, giving, s, l.Allows); err != nil {
				stop(fmt.Errorf("syslog: %w", err))
			}
		})
	}
	for _, p := range l.Packets {
		readers.Go(func() {
			if err := in.servePackets(reading, p, l.Allows); err != nil {
				stop(fmt.Errorf("syslog: %w", err))
			}
		})
	}
	for _, q := range []*queue{in.streams, in.packets} {
		givers.Go(func() { in.give(giving, q) })
	}
	<-reading.Done()
	cut := time.AfterFunc(grace, end)
	defer cut.Stop()
	readers.Wait()
	in.streams.close()
	in.packets.close()
	givers.Wait()
	if ctx.Err() == nil {
		return context.Cause(reading)
	}
	return nil
}

// give hands what is queued to the pool, one batch after the other, until the queue is
// closed and empty, or ctx ends.
func (in *Input) give(ctx context.Context, q *queue) {
	for {
		batch := q.take(ctx, batchEvents, batchBytes)
		if len(batch) == 0 {
			if left := q.drop(); left > 0 {
				in.lost(left, context.Cause(ctx))
			}
			return
		}
		for {
			err := in.submit(ctx, batch)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				in.lost(len(batch), err)
				break
			}
			in.cfg.OnError(fmt.Errorf("syslog: %d messages wait: %w", len(batch), err))
			if !errors.Is(err, pool.ErrStalled) && !errors.Is(err, pool.ErrBusy) { // those waited
				_ = backoff.Sleep(ctx, retryPause)
			}
		}
		q.release(batch)
	}
}

// tell counts messages that are lost; without a pool nothing counts.
func (in *Input) tell(reason string, n int) {
	if in.cfg.Pool != nil {
		in.cfg.Pool.Lost(pool.InputSyslog, in.cfg.Topic, reason, n)
	}
}

func (in *Input) lost(n int, why error) {
	in.stats.dropped.Add(uint64(n))
	in.tell(pool.LostAtEnd, n)
	in.cfg.OnError(fmt.Errorf("syslog: %d messages were read and are lost: %w", n, why))
}

// submit gives a batch to the pool: all of it, or nothing when the error is not nil.
func (in *Input) submit(ctx context.Context, batch []queued) error {
	ctx = access.With(ctx, access.Almanac) // syslog has no accounts
	req := in.cfg.Pool.Begin(pool.InputSyslog)
	defer req.End()
	if err := req.Ready(ctx); err != nil {
		return err
	}
	size := 0
	for i := range batch {
		size += batch[i].size
	}
	if err := req.Grow(ctx, size); err != nil {
		return err
	}
	to, err := req.To(ctx, in.cfg.Topic)
	if err != nil {
		return err
	}
	refused := 0
	for i := range batch {
		if err := to.Add(batch[i].event); err != nil {
			refused++
			in.cfg.OnError(fmt.Errorf("syslog: a message is refused: %w", err))
		}
	}
	// What was taken in part goes on its way; the rest of it is lost with the process.
	if err := req.Submit(ctx); err != nil && !errors.Is(err, pool.ErrOutcomeUnknown) {
		return err
	}
	in.stats.refused.Add(uint64(refused))
	in.stats.taken.Add(uint64(len(batch) - refused))
	return nil
}

// event reads a message that came from a peer.
func (in *Input) event(d *Decoder, f Frame, peer string) schemas.Event {
	now := in.cfg.Now()
	ev := d.Decode(f, Options{Now: now, Location: in.cfg.Location, Peer: peer})
	if ev.Time.IsZero() {
		ev.Time = now // of its arrival: it may wait
	}
	for i := range ev.Attrs {
		if ev.Attrs[i].Key == AttrError {
			in.stats.whole.Add(1)
		}
	}
	return ev
}

// host is the address of a peer without its port.
func host(a net.Addr) string {
	if a == nil {
		return ""
	}
	h, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return h
}
