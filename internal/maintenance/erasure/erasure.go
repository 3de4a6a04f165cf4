package erasure

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Config is what erasing needs. Registry, Reader and DB are required.
type Config struct {
	Registry *registry.Registry
	Reader   *query.Reader
	DB       *tables.DB
	// PrivacyKey is the key of topics' hash rules: a user of a topic that hashes user_id
	// is found by it.
	PrivacyKey []byte
	// Within bounds the wait until everything covered is stored, and that of a purge for a backup. Default 10 min.
	Within time.Duration
	// ReplayWindow and KeepTime are the janitor's (retention.Config): from them follows when the streams
	// let go of what was erased. Defaults 7 days and schemas.DedupWindow.
	ReplayWindow, KeepTime time.Duration
	// Progress is told what is being done; it must not block.
	Progress func(Progress)
	// Crash is called at the named points where tests kill the process.
	Crash func(point string)
}

// Progress is how far an erasure has come.
type Progress struct {
	State ledger.State
	// Pending events are to be stored yet, while settling.
	Pending uint64
	// Done of Shards shards are erased.
	Done, Shards int
	// Copying says that a purge waits until a backup has ended.
	Copying bool
}

// Eraser erases events. It is safe for concurrent use, and any number of
// processes may carry out the same erasure.
type Eraser struct {
	cfg    Config
	js     jetstream.JetStream
	events jetstream.Stream
	shards jetstream.Stream
}

// New prepares an eraser.
func New(ctx context.Context, cfg Config) (*Eraser, error) {
	if cfg.Within == 0 {
		cfg.Within = 10 * time.Minute
	}
	if cfg.ReplayWindow == 0 {
		cfg.ReplayWindow = 7 * 24 * time.Hour
	}
	if cfg.KeepTime == 0 {
		cfg.KeepTime = schemas.DedupWindow
	}
	cfg.Registry = cfg.Registry.WithThird(cfg.DB)
	x := &Eraser{cfg: cfg, js: cfg.Registry.JetStream()}
	var err error
	if x.events, err = streams.Open(ctx, x.js, schemas.StreamEvents); err != nil {
		return nil, fmt.Errorf("erase: stream %s: %w", schemas.StreamEvents, err)
	}
	if x.shards, err = streams.Open(ctx, x.js, schemas.StreamShards); err != nil {
		return nil, fmt.Errorf("erase: stream %s: %w", schemas.StreamShards, err)
	}
	return x, nil
}

func (x *Eraser) crash(point string) {
	if x.cfg.Crash != nil {
		x.cfg.Crash(point)
	}
}

func (x *Eraser) progress(p Progress) {
	if x.cfg.Progress != nil {
		x.cfg.Progress(p)
	}
}

// Start enters an erasure in the ledger and returns its entry. From now on no
// reader of the streams gives out its events; Run takes them from ClickHouse.
func (x *Eraser) Start(ctx context.Context, req Request) (ledger.Erasure, error) {
	e, err := x.compile(ctx, req, time.Now())
	if err != nil {
		return e, err
	}
	if _, err := x.checkSums(ctx, &e); err != nil {
		return e, err
	}
	// Before the fence is read, so that all of it came from before.
	if e.Tails, err = x.growing(ctx, e.Topic); err != nil {
		return e, err
	}
	end, err := x.end(ctx, &e)
	if err != nil {
		return e, err
	}
	e.Fence, e.FenceTime = end.Seq, end.Stored
	x.crash("erase.fenced")
	if e.Front != "" {
		e.Cond = fmt.Sprintf("`%s` <= %d AND (%s)", kinds.ColSeq, e.Fence, e.Cond)
	}
	e.ID = newID(e.CreatedAt)
	if e, err = x.cfg.Registry.Enter(ctx, e); err != nil {
		return e, err
	}
	if e, err = x.raise(ctx, e); err != nil {
		return e, fmt.Errorf("erasure %s is entered, and may not mean what was accepted at that moment: `almanac erase resume %s` carries it out, and the same erasure once more takes the rest: %w", e.ID, e.ID, err)
	}
	x.crash("erase.entered")
	x.noteEarly(ctx, &e)
	return e, nil
}

// end is the last message of the stream that the erasure's events come from.
func (x *Eraser) end(ctx context.Context, e *ledger.Erasure) (schemas.Source, error) {
	source := cmp.Or(e.Front, schemas.StreamEvents)
	info, err := streams.Info(ctx, x.js, source)
	if err != nil {
		return schemas.Source{}, fmt.Errorf("erase: %s: %w", source, err)
	}
	return streams.EndOf(info), nil
}

// raiseWait bounds the end of a start.
const raiseWait = 10 * time.Second

// raise moves the fence to the end of EVENTS once the erasure is entered. Who writes what it read, and looks in the ledger afterwards, either
// finds the entry there or was accepted up to the fence.
func (x *Eraser) raise(ctx context.Context, e ledger.Erasure) (ledger.Erasure, error) {
	if e.Front != "" { // nothing that is read is written into a front, and the condition has its fence
		return e, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), raiseWait) // a client that goes away leaves no entry half meant
	defer cancel()
	end, err := x.end(ctx, &e)
	if err != nil || end.Seq <= e.Fence {
		return e, err
	}
	raised, err := x.cfg.Registry.AmendErasure(ctx, e.Topic, e.ID, func(now *ledger.Erasure) bool {
		if now.State != ledger.Waiting || len(now.Bounds) > 0 || end.Seq <= now.Fence {
			return false
		}
		now.Fence, now.FenceTime = end.Seq, end.Stored
		return true
	})
	if err == nil && raised.Fence < end.Seq {
		err = errors.New("it was begun by another process before")
	}
	return raised, err
}

// newID is a name people can sort and say: the day, and six random digits.
func newID(at time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails: see its documentation
	return at.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(b[:])
}

// Run carries an erasure on from where it stands to its end. It may be called
// again after any failure, and on one that is erased: should ClickHouse have been
// restored from an older copy, what came back with it goes again.
func (x *Eraser) Run(ctx context.Context, topic, id string) (ledger.Erasure, error) {
	was, err := x.cfg.Registry.Erasure(ctx, topic, id)
	if err != nil {
		if d, removed := x.cfg.Registry.Removal(ctx, topic); removed == nil {
			err = fmt.Errorf("%w: topic %q was removed at %s, with the erasures that it had", err, topic, d.Began.Format(time.RFC3339))
		}
		return was, err
	}
	for again := maxCut; ; again-- {
		e, err := x.carryOn(ctx, topic, id)
		if err != nil && !e.Redacted && was.Schema > 0 {
			err = x.cfg.Registry.IfRemoved(ctx, err, &schemas.Topic{Name: topic, Version: was.Schema})
		}
		if again == 0 || !errors.Is(err, streams.ErrCut) || ctx.Err() != nil {
			return e, err
		}
	}
}

// maxCut is how often an erasure goes on by itself after a listing that a busy
// server cut short.
const maxCut = 5

func (x *Eraser) carryOn(ctx context.Context, topic, id string) (ledger.Erasure, error) {
	e, err := x.cfg.Registry.Erasure(ctx, topic, id)
	if err != nil {
		return e, err
	}
	if e.Redacted {
		return e, x.redactedAgain(ctx, &e)
	}
	if e.State == ledger.Waiting {
		if e, err = x.waitStored(ctx, e); err != nil {
			return e, err
		}
		x.crash("erase.settled")
	}
	// Before a row goes: streams that are restored from an older copy do not know of it.
	if err := x.copyLedger(ctx, topic, id, false); err != nil {
		return e, err
	}
	if e.Front != "" {
		if err := x.front(ctx, &e); err != nil {
			return e, err
		}
		x.crash("erase.front")
	}
	if err := x.applied(ctx, &e); err != nil {
		return e, err
	}
	rows, diffs, shards, err := x.total(ctx, &e)
	if err != nil {
		return e, err
	}
	e, err = x.cfg.Registry.AmendErasure(ctx, topic, id, func(e *ledger.Erasure) bool {
		if e.State == ledger.Erased && e.Rows == rows && e.Diffs == diffs && e.Shards == shards {
			return false
		}
		if e.State != ledger.Erased {
			e.State, e.ErasedAt = ledger.Erased, time.Now().UTC()
		}
		e.Rows, e.Diffs, e.Shards = rows, diffs, shards
		return true
	})
	if err != nil {
		return e, err
	}
	if err := x.copyLedger(ctx, topic, id, false); err != nil { // with the mark that is there
		return e, err
	}
	there, err := x.cfg.DB.ReadLedger(ctx)
	if err != nil || there[e.Key()].Applied {
		return e, err
	}
	return e, x.applied(ctx, &e) // an older copy was restored since, or another process copied the entry as it was before the mark
}

// applied takes out of ClickHouse what an erasure means, marks it there as applied, and counts once more: an older copy may have been
// restored between the last count and the mark, which then lies with rows that are to go.
func (x *Eraser) applied(ctx context.Context, e *ledger.Erasure) error {
	for range maxSweeps {
		if err := x.sweep(ctx, e); err != nil {
			return err
		}
		x.crash("erase.swept")
		if err := x.sums(ctx, e); err != nil {
			return err
		}
		x.crash("erase.summed")
		if err := x.copyLedger(ctx, e.Topic, e.ID, true); err != nil {
			return err
		}
		x.crash("erase.noted")
		_, found, err := x.counted(ctx, e, true)
		if err != nil || len(found) == 0 {
			return err
		}
		if err := x.unmark(ctx, e); err != nil { // else it would pass for applied if this process were killed now
			return err
		}
	}
	return fmt.Errorf("%w: topic %q had rows of erasure %s again after each of %d marks", ErrNotGone, e.Topic, e.ID, maxSweeps)
}

// total adds up the receipts.
func (x *Eraser) total(ctx context.Context, e *ledger.Erasure) (rows, diffs uint64, shards int, err error) {
	tallies, err := x.cfg.Registry.ErasureRecords(ctx, e.Topic)
	for _, t := range tallies {
		if r, ok := t.Receipts[e.ID]; ok {
			rows, diffs = rows+r.Rows, diffs+r.Diffs
			shards++
		}
	}
	return rows, diffs, shards, err
}
