package registry

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
)

// probeTime is how long a write may take before it counts as not happening:
// many times what a busy disk needs to sync.
const probeTime = 5 * time.Second

// Probe stores something in the bucket and takes it out again. A server whose
// disk was full or failed may answer every question and still store nothing,
// silently, until it is restarted: only a write finds out. It speaks for
// JetStream and for the bucket; another stream may be stuck alone, which no
// client can tell without storing an event in it.
func (r *Registry) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	key := schemas.LeaseKey("probe", nats.NewInbox()[len(nats.InboxPrefix):])
	if _, err := r.kv.PutString(ctx, key, "{}"); err != nil {
		return fmt.Errorf("registry: storing a message to try it: %w", err)
	}
	return r.forget(ctx, key)
}
