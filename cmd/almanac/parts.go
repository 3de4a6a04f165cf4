package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/alerts/evaluate"
	"github.com/almanac-events/almanac/internal/maintenance/cold"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/maintenance/seals"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/ops/families"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/rollups"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/sinks"
)

// part is one loop of a process: it works until its context ends.
type part interface {
	Run(ctx context.Context) error
}

func newRouter(ctx context.Context, nc *nats.Conn, reg *registry.Registry, piiKey string, counts *families.Router, log zerolog.Logger) (part, error) {
	log = log.With().Str("part", "router").Logger()
	again := newRationer()
	return router.New(ctx, nc, router.Config{Registry: reg, PrivacyKey: []byte(piiKey), Hooks: router.Hooks{
		Routed: func(topic, lane string, b router.Batch) {
			counts.Routed(topic, lane, b)
			log.Debug().Str("topic", topic).Str("lane", lane).Int("messages", b.Messages).Int("bytes", b.Bytes).Msg("routed")
		},
		Dead: func(topic, reason string, events int, err error) {
			counts.Dead(topic, reason, events, err)
			if more, ok := again.pass("dead " + topic + reason); ok {
				log.Warn().Err(err).Str("topic", topic).Str("reason", reason).Int("events", events).Int("more", more).
					Msg("kept as a dead letter; see almanac dead ls")
			}
		},
		Rotated: func(s registry.Shard, reason string) {
			counts.Rotated(s, reason)
			log.Info().Str("shard", s.Name()).Int("lane", s.ID.Lane()).Str("reason", reason).Msg("rotated")
		},
		Fault: func(topic, lane string, err error) {
			counts.Fault(topic, lane, err)
			if more, ok := again.pass("fault " + topic + lane); ok {
				log.Warn().Err(err).Str("topic", topic).Str("lane", lane).Int("more", more).Msg("trying again")
			}
		},
	}})
}

// coldEvery is how far apart rounds begin that move shards; zero: cold's own default. Tests make it shorter.
var coldEvery time.Duration

// coldCrash is called at the named points of a move; nil: nothing. Tests kill the process there.
var coldCrash func(point string)

// newSinks makes the loops of a sink's process: sinks and rollups, which share the same shards, and what one of all such processes runs under a
// lease.
func newSinks(ctx context.Context, nc *nats.Conn, reg *registry.Registry, db *tables.DB, s *settings, mayPurge func() error, n *processNumbers, log zerolog.Logger) ([]part, error) {
	counts := n.sinks()
	log = log.With().Str("part", "sink").Logger()
	again := newRationer()
	db.SetHooks(tables.Hooks{
		Unreachable: func(cause error) {
			log.Error().Err(cause).Str("clickhouse", db.Address()).Msg("ClickHouse does not answer; events wait in the streams until it does")
		},
		Reachable: func(away time.Duration) {
			log.Info().Str("clickhouse", db.Address()).Dur("away", away).Msg("ClickHouse answers again")
		},
		Vanished: func() {
			if more, ok := again.pass("vanished"); ok {
				log.Warn().Str("clickhouse", db.Address()).Int("more", more).Msg("ClickHouse answers, and does not run what it was sent over connections that stand; it is asked over new ones")
			}
		},
	})
	fault := func(ref schemas.ShardRef, err error) {
		counts.Fault(ref, err)
		if more, ok := again.pass(fmt.Sprint(ref)); ok {
			e := log.Warn().Err(err).Int("more", more)
			if ref != (schemas.ShardRef{}) {
				e = e.Stringer("shard", ref)
			}
			e.Msg("trying again")
		}
	}
	k, err := sinks.New(ctx, nc, sinks.Config{Registry: reg, DB: db, Hooks: sinks.Hooks{
		Stored: func(ref schemas.ShardRef, rows, bytes uint64, took time.Duration) {
			counts.Stored(ref, rows, bytes, took)
			log.Debug().Stringer("shard", ref).Uint64("rows", rows).Uint64("bytes", bytes).Dur("took", took).Msg("stored")
		},
		Burnt: func(ref schemas.ShardRef, head uint64, attempt int) {
			counts.Burnt(ref, head, attempt)
			log.Warn().Stringer("shard", ref).Uint64("head", head).Int("attempt", attempt).
				Msg("an insert was answered and stored nothing, as after a crash of ClickHouse: inserting again")
		},
		Failed: counts.Failed,
		Closed: func(ref schemas.ShardRef, rows uint64) {
			counts.Closed(ref, rows)
			log.Info().Stringer("shard", ref).Uint64("rows", rows).Msg("shard closed")
		},
		Fault: fault,
	}})
	if err != nil {
		return nil, err
	}
	owns := func() bool { return k.Owns("janitor") }
	j, err := retention.New(ctx, nc, retention.Config{Registry: reg, DB: db, Owns: owns, ReplayWindow: s.ReplayWindow, MayPurge: mayPurge, Hooks: retention.Hooks{
		Anonymised: func(ref schemas.ShardRef, fields []string) {
			log.Info().Stringer("shard", ref).Strs("fields", fields).Msg("fields cleared")
		},
		Dropped: func(ref schemas.ShardRef, rows uint64, reason string) {
			log.Info().Stringer("shard", ref).Uint64("rows", rows).Str("reason", reason).Msg("shard dropped")
		},
		Fault: fault,
	}})
	if err != nil {
		return nil, err
	}
	u, err := rollups.New(rollups.Config{Registry: reg, DB: db, Owns: k.Owns, Hooks: rollups.Hooks{
		Dropped: func(ref schemas.ShardRef, why string) {
			log.Warn().Stringer("shard", ref).Str("reason", why).Msg("deriving again")
		},
		Fault: fault,
	}})
	if err != nil {
		return nil, err
	}
	w, err := seals.New(seals.Config{Registry: reg, DB: db, Owns: func() bool { return k.Owns("seals") }, Hooks: seals.Hooks{
		Sealed: func(s schemas.Seal) {
			log.Info().Stringer("shard", s.Ref()).Uint64("rows", s.Rows).Uint64("number", s.Number).Str("why", s.Why).Str("hash", s.Hash).Msg("shard sealed by a digest")
		},
		Fault: fault,
	}})
	if err != nil {
		return nil, err
	}
	m := cold.New(cold.Config{Registry: reg, DB: db, Every: coldEvery, Crash: coldCrash, Owns: func() bool { return k.Owns("cold") }, Hooks: cold.Hooks{
		Moved: func(m cold.Move, took time.Duration) {
			log.Info().Stringer("shard", m.Ref).Str("volume", m.To).Uint64("bytes", m.Bytes).Dur("took", took).Msg("shard moved")
		},
		Fault: fault,
	}})
	eraser, err := newEraser(ctx, nc, reg, db, s)
	if err != nil {
		return nil, err
	}
	keep := erasure.NewKeeper(erasure.KeeperConfig{
		Eraser: eraser, Registry: reg, Owns: func() bool { return k.Owns("ledger") },
		Agreed: func(did erasure.Agreed) { sayAgreed(log, did) },
		Fault:  func(err error) { fault(schemas.ShardRef{}, err) },
	})
	evaluates, err := newEvaluator(nc, reg, db, []byte(s.PIIKey), k.Owns, n.alerts(), log)
	if err != nil {
		return nil, err
	}
	parts := []part{k, j, u, w, m, keep, evaluates}
	if s.VerifyEvery == 0 {
		return parts, nil
	}
	v, err := verify.New(nc, reg, db)
	if err != nil {
		return nil, err
	}
	p := n.proofs()
	return append(parts, &verify.Scheduled{
		Verify: v.Patient().Run, Every: s.VerifyEvery, Owns: func() bool { return k.Owns("verify") }, Began: func() { p.Began(s.VerifyEvery) }, Left: p.Left,
		Ended: func(rep *verify.Report, took time.Duration, err error) {
			p.Ended(rep, took, err)
			switch {
			case err != nil:
				log.Warn().Err(err).Dur("took", took).Msg("verify has no answer")
			case !rep.OK():
				log.Error().Uint64("missing", rep.Missing).Uint64("doubled", rep.Doubled).Int("problems", len(rep.Problems)).Dur("took", took).Msg("not proven: almanac verify says where")
			default:
				log.Debug().Uint64("accepted", rep.Accepted).Dur("took", took).Msg("proven")
			}
		},
	}), nil
}

// newEvaluator makes what evaluates rules of alerts.
func newEvaluator(nc *nats.Conn, reg *registry.Registry, db *tables.DB, piiKey []byte, owns func(string) bool, counts *families.Evaluator, log zerolog.Logger) (part, error) {
	r, err := query.New(nc, reg, db)
	if err != nil {
		return nil, err
	}
	again := newRationer()
	return evaluate.New(evaluate.Config{NATS: nc, Registry: reg, Reader: r, Owns: owns, PrivacyKey: piiKey, Hooks: evaluate.Hooks{
		Decided: counts.Decided, Recorded: counts.Recorded,
		Changed: func(n *decide.Notice) { // without the value of the group, which may name a person
			counts.Changed(n)
			log.Info().Str("topic", n.Topic).Str("group", n.Group).Str("alert", n.Rule).Str("state", string(n.To)).Str("key", n.Key).Msg("an alert changed")
		},
		Fault: func(topic string, err error) {
			counts.Fault(topic, err)
			if more, ok := again.pass("alerts " + topic); ok {
				log.Warn().Err(err).Str("topic", topic).Int("more", more).Msg("rules of alerts")
			}
		},
	}})
}

// newEraser makes what has the copies of the ledger agree; it opens EVENTS and SHARDS.
func newEraser(ctx context.Context, nc *nats.Conn, reg *registry.Registry, db *tables.DB, s *settings) (*erasure.Eraser, error) {
	r, err := query.New(nc, reg, db)
	if err != nil {
		return nil, err
	}
	return erasure.New(ctx, erasure.Config{Registry: reg, Reader: r, DB: db, ReplayWindow: s.ReplayWindow, PrivacyKey: []byte(s.PIIKey)})
}

func sayAgreed(log zerolog.Logger, did erasure.Agreed) {
	if did.PutBack > 0 {
		log.Warn().Int("entries", did.PutBack).Msg("the registry was lost or an older copy: entries were restored from their second copy")
	}
	if len(did.Adopted) > 0 {
		log.Warn().Strs("entries", did.Adopted).Msg("ClickHouse alone remembered these entries of the ledger: entered again")
	}
	if len(did.Again) > 0 {
		log.Warn().Strs("erasures", did.Again).Msg("ClickHouse or the streams were restored from a copy from before these erasures: carried out again")
	}
}
