package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

// throttle lets the engine run a tenth of the time.
func (h *Cluster) throttle(ctx context.Context, lasts time.Duration) error {
	defer h.Engine.Continue()
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		h.Engine.Stop()
		if err := backoff.Sleep(ctx, 90*time.Millisecond); err != nil {
			return err
		}
		h.Engine.Continue()
		if err := backoff.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// cutEvents flips a bit of a message of EVENTS that is stored, and starts NATS as after a crash: the stream ends before
// that message, and gives its sequences again. Nothing that was accepted is on its way meanwhile, so nothing may be lost.
func (h *Cluster) cutEvents(ctx context.Context, rnd *rand.Rand) error {
	h.corrupters.Lock()
	defer h.corrupters.Unlock()
	h.WriterLink.Cut() // answers under way are lost with their connections
	defer h.WriterLink.Heal()
	if err := h.quiet(ctx); err != nil {
		return err
	}
	h.NATS.Kill()
	cut, err := cutLast(h.NATS.Spec.Dir, rnd)
	if err := errors.Join(err, h.NATS.Start()); err != nil || !cut {
		return err
	}
	h.cuts++
	return h.NATS.Ready(ctx)
}

// quiet waits until all that was accepted is stored.
func (h *Cluster) quiet(ctx context.Context) error {
	return until(ctx, recoveryLimit, time.Second, func(ctx context.Context) error {
		rep, err := h.Verify(ctx)
		if err == nil && rep.Pending > 0 {
			err = fmt.Errorf("%d of %d accepted events are pending: %v", rep.Pending, rep.Accepted, rep.Problems)
		}
		return err
	})
}

// cutLast damages a message in the second half of the last block of EVENTS; false when there is none.
func cutLast(dir string, rnd *rand.Rand) (bool, error) {
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", schemas.StreamEvents, "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		return false, errors.Join(err, fmt.Errorf("faults: no blocks of %s in %s", schemas.StreamEvents, dir))
	}
	last, number := "", -1
	for _, b := range blocks {
		var n int
		if _, err := fmt.Sscanf(filepath.Base(b), "%d.blk", &n); err == nil && n > number {
			last, number = b, n
		}
	}
	block, err := os.ReadFile(last)
	if err != nil || len(block) < 2 {
		return false, err
	}
	from := len(block)/2 + rnd.IntN(len(block)/2)
	at := bytes.Index(block[from:], []byte("events."+Topic+"."))
	if at < 0 {
		return false, nil
	}
	block[from+at] ^= 4
	// Without its index the server reads the blocks, and ends the stream where one does not check.
	if err := os.Remove(filepath.Join(filepath.Dir(last), "index.db")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	return true, os.WriteFile(last, block, 0o600)
}

// loseKey deletes the registry's entry of a shard, and repairs until it is there again.
func (h *Cluster) loseKey(ctx context.Context, rnd *rand.Rand) error {
	reg, err := registry.Open(ctx, h.NC)
	if err != nil {
		return err
	}
	kv, err := reg.JetStream().KeyValue(ctx, schemas.Bucket)
	if err != nil {
		return err
	}
	keys, err := kv.ListKeysFiltered(ctx, schemas.ShardKeys(Topic))
	if err != nil {
		return err
	}
	var all []string
	for key := range keys.Keys() {
		all = append(all, key)
	}
	if len(all) == 0 {
		return errors.New("faults: the registry has no shard")
	}
	key := all[rnd.IntN(len(all))]
	if err := kv.Delete(ctx, key); err != nil {
		return err
	}
	db, err := tables.Open(h.dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return until(ctx, recoveryLimit, time.Second, func(ctx context.Context) error {
		r, err := repair.New(ctx, repair.Config{NC: h.NC, Registry: reg, DB: db, Check: router.FramesOf(nil)})
		if err != nil {
			return err
		}
		plan, err := r.Plan(ctx, Topic)
		if err == nil {
			err = r.Apply(ctx, plan, func(*repair.Action, error) {})
		}
		if err == nil {
			_, err = kv.Get(ctx, key)
		}
		return err
	})
}
