package erasure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// noteTime bounds the copying of a new entry into ClickHouse. Where that is away the entry is
// copied before the first row goes.
const noteTime = 2 * time.Second

// noteEarly copies a new entry into ClickHouse, where that answers soon.
func (x *Eraser) noteEarly(ctx context.Context, e *ledger.Erasure) {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	_ = x.copyLedger(ctx, e.Topic, e.ID, false) // it is copied again before a row goes
}

// copyLedger copies an erasure, and what erasures took from the shards of its topic, into ClickHouse,
// as the registry has them. applied says that the rows there are without what it means: that is
// written before the entry says that the erasure has ended, so that no reader doubts it.
func (x *Eraser) copyLedger(ctx context.Context, topic, id string, applied bool) error {
	here, err := x.cfg.Registry.KeptHere(ctx)
	if err != nil {
		return err
	}
	there, err := x.cfg.DB.ReadLedger(ctx)
	if err != nil {
		return err
	}
	own := schemas.LedgerKey(topic, id)
	var save []schemas.LedgerCopy
	for key, k := range here {
		if !schemas.LedgerOf(key, topic) {
			continue
		}
		was := there[key]
		k.Applied = was.Applied || key == own && applied
		if was.Count < k.Count || was.Applied != k.Applied {
			save = append(save, k)
		}
	}
	return x.cfg.DB.SaveLedger(ctx, save...)
}

// unmark takes back that the rows in ClickHouse are without what an erasure means.
func (x *Eraser) unmark(ctx context.Context, e *ledger.Erasure) error {
	there, err := x.cfg.DB.ReadLedger(ctx)
	if err != nil {
		return err
	}
	k, has := there[e.Key()]
	if !has || !k.Applied {
		return nil
	}
	k.Applied = false
	return x.cfg.DB.SaveLedger(ctx, k)
}

// Agreed is what Agree did.
type Agreed struct {
	PutBack int      // entries that the bucket had lost, or had older than their copies
	Adopted []string // keys that ClickHouse's copy of the ledger alone remembered
	Again   []string // erasures that were carried out again
}

// Agree brings the copies of the ledger together: the registry's bucket, its second copy, and
// ClickHouse's. An erasure that a copy alone remembers is entered again. One that ended and that
// ClickHouse, or the streams, do not have, since they were restored from a copy from before it,
// is carried out again. all compares every entry of the registry with its copy too, which reads
// all of them, and looks for erased people's records in the fronts. It may be called any number of times, from any number of processes.
func (x *Eraser) Agree(ctx context.Context, all bool) (did Agreed, err error) {
	if all {
		if did.PutBack, err = x.cfg.Registry.Reconcile(ctx); err != nil {
			return did, err
		}
	}
	if did.Adopted, err = Adopt(ctx, x.cfg.Registry, x.cfg.DB); err != nil {
		return did, err
	}
	behind, err := x.behind(ctx, all)
	if err != nil {
		return did, err
	}
	var failed []error
	for topic, ids := range behind {
		for _, id := range ids {
			if _, err := x.Run(ctx, topic, id); err != nil {
				failed = append(failed, fmt.Errorf("erase: carrying out %s of topic %q again: %w", id, topic, err))
				continue
			}
			did.Again = append(did.Again, id)
		}
	}
	return did, errors.Join(failed...)
}

// Adopt enters what ClickHouse's copy of the ledger has newer than the registry, and copies there
// what it has older.
func Adopt(ctx context.Context, reg *registry.Registry, db *tables.DB) (adopted []string, err error) {
	there, err := db.ReadLedger(ctx)
	if err != nil {
		return nil, err
	}
	here, err := reg.KeptHere(ctx)
	if err != nil {
		return nil, err
	}
	adoptable, save := exchange(here, there)
	for _, k := range adoptable {
		// The streams were restored from a copy from before it: what they brought back is to go again.
		if erasure, _ := schemas.InLedger(k.Key); erasure && k.Applied {
			k.Applied = false
			if err := db.SaveLedger(ctx, k); err != nil {
				return adopted, err
			}
		}
		did, err := reg.Adopt(ctx, k)
		if err != nil {
			return adopted, err
		}
		if did {
			adopted = append(adopted, k.Key)
		}
	}
	return adopted, db.SaveLedger(ctx, save...)
}

// exchange decides what goes from ClickHouse's copy of the ledger into the registry, and what
// from the registry there: of each entry the one that was written more often. Whether ClickHouse
// has what an erasure did goes with its rows, and no other copy can say that. A descriptor comes
// back by a repair alone: routers begin as soon as they know a topic, and its shards come first. What a removal counts is not copied.
func exchange(here, there map[string]schemas.LedgerCopy) (adopt, save []schemas.LedgerCopy) {
	for key, k := range there {
		if !schemas.IsTopicKey(key) && k.Count > here[key].Count {
			adopt = append(adopt, k)
		}
	}
	for key, k := range here {
		if was := there[key]; k.Count > was.Count && !(schemas.IsRemovalKey(key) && registry.SameRemoval(was.Value, k.Value)) {
			k.Applied = was.Applied
			save = append(save, k)
		}
	}
	return adopt, save
}

// behind are the erasures that have ended and are to be carried out again: with fronts also those whose records a front
// has again.
func (x *Eraser) behind(ctx context.Context, fronts bool) (map[string][]string, error) {
	all, err := x.cfg.Registry.Ledgers(ctx)
	if err != nil {
		return nil, err
	}
	behind, err := x.cfg.Registry.Behind(ctx, all)
	if err != nil || !fronts {
		return behind, err
	}
	if behind == nil {
		behind = map[string][]string{}
	}
	return behind, x.behindFronts(ctx, all, behind)
}

// Keeper has the copies of the ledger agree, for as long as it runs. One of several suffices.
type Keeper struct{ cfg KeeperConfig }

// KeeperConfig is what a keeper is given. Eraser and Registry are required.
type KeeperConfig struct {
	Eraser   *Eraser
	Registry *registry.Registry
	// Owns says whether this process is the one that keeps; nil: it is.
	Owns func() bool
	// Every is how often it looks at ClickHouse's copy. Default KeepEvery.
	Every time.Duration
	// Agreed is told what was restored or carried out again, Fault what failed.
	Agreed func(Agreed)
	Fault  func(error)
}

const (
	// KeepEvery is how often the copies of the ledger are compared: a small read of each.
	KeepEvery = 3 * time.Second
	// reconcileEvery is how often all entries of the registry are compared with their copies
	// where the connection to NATS was never lost: a bucket is not exchanged under a server that
	// runs.
	reconcileEvery = 10 * time.Minute
)

// NewKeeper prepares a keeper.
func NewKeeper(cfg KeeperConfig) *Keeper {
	if cfg.Every == 0 {
		cfg.Every = KeepEvery
	}
	if cfg.Owns == nil {
		cfg.Owns = func() bool { return true }
	}
	return &Keeper{cfg: cfg}
}

// Run keeps until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(k.cfg.Every)
	defer tick.Stop()
	var looked time.Time // at all entries
	reconnects := uint64(0)
	for {
		if k.cfg.Owns() {
			now := k.cfg.Registry.JetStream().Conn().Stats().Reconnects
			all := time.Since(looked) > reconcileEvery || now != reconnects
			did, err := k.cfg.Eraser.Agree(ctx, all)
			if all && err == nil {
				looked, reconnects = time.Now(), now
			}
			if did.PutBack+len(did.Adopted)+len(did.Again) > 0 && k.cfg.Agreed != nil {
				k.cfg.Agreed(did)
			}
			if err != nil && ctx.Err() == nil && k.cfg.Fault != nil && tables.Classify(err) != tables.Unreachable {
				k.cfg.Fault(err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// clearThird copies what the registry has of an erasure into ClickHouse, and takes what it was
// before out of there: whom it named.
func (x *Eraser) clearThird(ctx context.Context, topic, id string) error {
	if err := x.copyLedger(ctx, topic, id, false); err != nil {
		return err
	}
	here, err := x.cfg.Registry.KeptHere(ctx)
	if err != nil {
		return err
	}
	key := schemas.LedgerKey(topic, id)
	return x.cfg.DB.ClearLedger(ctx, key, here[key].Count)
}
