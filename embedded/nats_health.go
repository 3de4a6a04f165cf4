package embedded

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Healthy says whether events can be stored now. A full disk has two faces in 2.15: usually the one stream that met it
// takes no more messages (publishers get no answer) while JetStream as a whole stays on; sometimes JetStream switches
// itself off for the whole server. Neither ends by itself when there is space again.
func (n *NATS) Healthy() error {
	s := n.server.Load()
	if s == nil || !s.Running() {
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

func (n *NATS) storeOff(why string) error {
	return fmt.Errorf("embedded NATS: %w: %s: the disk of %s is full or failing; once it has %s free the server restarts "+
		"by itself", ErrStoreOff, why, n.cfg.Dir, humanBytes(n.cfg.MinFreeBytes))
}

// watch looks at the server until ctx ends, and replaces one that cannot store.
func (n *NATS) watch(ctx context.Context) {
	tick := time.NewTicker(n.cfg.CheckInterval)
	defer tick.Stop()
	pauses := backoff{first: n.cfg.CheckInterval, longest: longPause}
	began, notBefore := time.Now(), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			err := n.Healthy()
			if err == nil || now.Before(notBefore) || !n.roomAgain() {
				continue
			}
			n.replace(err)
			notBefore = time.Now().Add(pauses.pause(now.Sub(began)))
			began = time.Now()
		}
	}
}

// roomAgain says whether the store can grow.
func (n *NATS) roomAgain() bool {
	free, err := FreeBytes(n.cfg.Dir)
	return err == nil && free >= n.cfg.MinFreeBytes
}

// replace puts a new server in the place of one that cannot store. Between the two nobody answers; clients see a
// disconnect and come back.
func (n *NATS) replace(why error) {
	n.cfg.Log.say(LevelWarn, "nats", fmt.Sprintf("restarting the server on port %d: %v", n.port, why))
	n.stop()
	if err := n.start(); err != nil {
		n.cfg.Log.say(LevelError, "nats", err.Error()) // tried again at a later tick
		return
	}
	n.cfg.Log.say(LevelInfo, "nats", "the server is back")
}
