package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/almanac-events/almanac/internal/backoff"
)

// Healthy reports whether events can be stored now, within healthTime. A full disk has three faces in 2.15: usually the
// one stream that met it takes no more messages (publishers get no answer) while JetStream as a whole stays on; sometimes
// JetStream switches itself off for the whole server; rarely a stream deadlocks with itself in a purge
// (docs/upstream.md), and whatever asks about it hangs too: ErrHung. None ends by itself when there is space again.
func (n *NATS) Healthy() error {
	since, err := n.health()
	if !since.IsZero() {
		return n.hung(fmt.Sprintf("a health check has waited since %s", since.UTC().Format(time.TimeOnly)))
	}
	return err
}

// healthTime is how long Healthy waits for an answer: a check takes milliseconds, and as long as a sync on a busy disk.
const healthTime = 2 * time.Second

// checks bounds the health checks: at most one is under way for a server, and those who ask meanwhile wait for its
// answer. A server that hangs holds one goroutine, however often it is asked.
type checks struct {
	mu  sync.Mutex
	now *check
}

// check is one question to one server.
type check struct {
	of    *server.Server
	since time.Time
	done  chan struct{}
	err   error // read after done
}

// health returns the server's answer; or, when it does not come within healthTime, since when it is waited for.
func (n *NATS) health() (since time.Time, err error) {
	s := n.server.Load()
	if s == nil {
		return time.Time{}, fmt.Errorf("embedded NATS: %w", ErrNotRunning)
	}
	n.checks.mu.Lock()
	c := n.checks.now
	if c == nil || c.of != s || isClosed(c.done) {
		c = &check{of: s, since: time.Now(), done: make(chan struct{})}
		n.checks.now = c
		go func() {
			defer close(c.done)
			c.err = n.look(s)
		}()
	}
	n.checks.mu.Unlock()
	timer := time.NewTimer(min(healthTime, n.cfg.HungAfter))
	defer timer.Stop()
	select {
	case <-c.done:
		return time.Time{}, c.err
	case <-timer.C:
		return c.since, nil
	}
}

// look asks the server. It may never return.
func (n *NATS) look(s *server.Server) error {
	if !s.Running() {
		return fmt.Errorf("embedded NATS: %w", ErrNotRunning)
	}
	if !s.JetStreamEnabled() {
		return n.storeOff("it switched itself off")
	}
	for _, e := range s.Healthz(&server.HealthzOptions{Details: true}).Errors {
		// A stream that is just being deleted is reported too, as one that could not be recovered.
		if strings.Contains(e.Error, "write error") {
			return n.storeOff(e.Error)
		}
	}
	return nil
}

func (n *NATS) hung(why string) error {
	return fmt.Errorf("embedded NATS: %w: %s, as after a full disk; its store is %q. What was acknowledged is on disk: end this "+
		"process and start it again, with room on that disk", ErrHung, why, n.cfg.Dir)
}

// Space returns nil when the store can grow by MinFreeBytes.
func (n *NATS) Space() error { return spaceIn(n.cfg.Dir, n.cfg.MinFreeBytes) }

// Disk returns what is free on the disk of the store, and what it has in all.
func (n *NATS) Disk() (free, all int64, err error) { return DiskBytes(n.cfg.Dir) }

// NATSSpace is Room of the NATS that an Almanac keeps below its data directory, as another process sees it.
func NATSSpace(data string) error { return spaceIn(data, natsMinFree) }

func spaceIn(dir string, want int64) error {
	free, _, err := DiskBytes(dir)
	if err == nil && free < want {
		err = fmt.Errorf("embedded NATS: %w: %q has %s free, less than %s", ErrDiskSpace, dir, humanBytes(free), humanBytes(want))
	}
	return err
}

func (n *NATS) storeOff(why string) error {
	return fmt.Errorf("embedded NATS: %w: %s: the disk of %q is full or failing; once it has %s free the server restarts "+
		"by itself", ErrStoreOff, why, n.cfg.Dir, humanBytes(n.cfg.MinFreeBytes))
}

// watch looks at the server until ctx ends, and replaces one that cannot store. It returns ErrHung for a server that
// cannot be replaced, because it does not answer for HungAfter or does not stop.
func (n *NATS) watch(ctx context.Context) error {
	tick := time.NewTicker(n.cfg.CheckInterval)
	defer tick.Stop()
	pauses := backoff.Backoff{Least: n.cfg.CheckInterval, Most: longPause}
	began, notBefore := time.Now(), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			since, err := n.health()
			if !since.IsZero() && time.Since(since) >= n.cfg.HungAfter {
				return n.hung(fmt.Sprintf("no answer to a health check for %s", n.cfg.HungAfter))
			}
			if err == nil && n.isShort() {
				err = errors.New("the disk has room again, and the streams may grow")
			}
			if err == nil || now.Before(notBefore) || n.Space() != nil {
				continue
			}
			if err := n.widen(); errors.As(err, new(*SilentDiskError)) {
				continue
			} else if err != nil {
				return err
			}
			if err := n.replace(err); err != nil {
				return err
			}
			if now.Sub(began) >= steadyAfter {
				pauses.Reset()
			}
			notBefore = time.Now().Add(pauses.Next())
			began = time.Now()
		}
	}
}

// Storing reports why nothing can be stored now: the server does not, or it started on a disk
// without room, and there is none yet. It is at most storingAge old.
func (n *NATS) Storing() error {
	n.last.mu.Lock()
	defer n.last.mu.Unlock()
	if time.Since(n.last.at) < storingAge {
		return n.last.err
	}
	err := n.Healthy()
	if err == nil && n.isShort() {
		err = n.Space()
	}
	n.last.at, n.last.err = time.Now(), err
	return err
}

// storingAge is how old an answer of Storing may be: a health check looks at every stream.
const storingAge = 500 * time.Millisecond

// storing is the last answer of Storing.
type storing struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

func (n *NATS) isShort() bool { return n.short.Load() }

// widen gives the streams the room that there is now, where they began with too little.
func (n *NATS) widen() error {
	if !n.isShort() {
		return nil
	}
	limit, err := DefaultStoreLimit(n.cfg.Dir)
	if err == nil {
		n.limit.Store(limit)
		n.short.Store(false)
	}
	return err
}

// replace puts a new server in the place of one that cannot store. Between the two no server answers; clients see a
// disconnect and come back.
func (n *NATS) replace(why error) error {
	n.cfg.Log.say(LevelWarn, "nats", fmt.Sprintf("restarting the server on port %d: %v", n.port, why))
	if err := n.stop(); err != nil {
		return err
	}
	if err := n.start(); err != nil {
		n.cfg.Log.say(LevelError, "nats", err.Error()) // tried again at a later tick
		return nil
	}
	n.cfg.Log.say(LevelInfo, "nats", "the server is back")
	return nil
}
