package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

// prepare has streams, registry, topics and tables be there and agree, as the operator: the parts may do less.
func (n *node) prepare(ctx context.Context) (*tables.DB, error) {
	nc, err := n.servers.connect(access.UserOperator, "up", n.log)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	reg, err := registry.Setup(ctx, nc, n.servers.limits())
	lost := errors.Is(err, registry.ErrLost)
	if lost {
		reg, err = registry.CreateBucket(ctx, nc, n.servers.limits())
	}
	if err != nil {
		return nil, err
	}
	if n.servers.NATS != nil { // just started: those that have a lease in it are gone
		if err := reg.ForgetMembers(ctx); err != nil {
			return nil, err
		}
	}
	db, err := n.tables(access.UserOperator, reg)
	if err != nil {
		return nil, err
	}
	if err := establish(ctx, db); err != nil {
		return nil, err
	}
	if lost { // before anything is declared or routed
		if _, err := erasure.Adopt(ctx, reg, db); err != nil {
			return nil, err
		}
		if err := n.rebuild(ctx, nc, reg, db); err != nil {
			return nil, err
		}
	}
	if err := ensureDefault(ctx, reg, n.s); err != nil {
		return nil, err
	}
	storage, err := db.Storage(ctx)
	if err != nil {
		return nil, err
	}
	if err := canCold(storage, n.s.Topics); err != nil {
		return nil, err
	}
	if n.topics, err = declareTopics(ctx, reg, n.s, n.log); err != nil {
		return nil, err
	}
	for i := range n.topics { // before the ready line, so that SQL finds them from then on
		if err := db.Ensure(ctx, &n.topics[i]); err != nil {
			return nil, err
		}
		if err := db.EnsureViews(ctx, &n.topics[i]); err != nil {
			n.log.Warn().Err(err).Msg("a ready-made view is missing")
		}
	}
	return db, n.agree(ctx, nc, reg, db)
}

// agree applies the ledger before anything is stored or served: what a copy of the ledger alone
// remembers is entered, and what a restored copy brought back of erasures goes again. Where that
// fails the sinks go on trying, and no read of such a topic is answered until it is done.
func (n *node) agree(ctx context.Context, nc *nats.Conn, reg *registry.Registry, db *tables.DB) error {
	if err := db.EnsureLedger(ctx); err != nil {
		return err
	}
	x, err := newEraser(ctx, nc, reg, db, n.s)
	if err != nil {
		return err
	}
	did, err := x.Agree(ctx, false)
	sayAgreed(n.log, did)
	if err != nil && ctx.Err() == nil {
		n.log.Error().Err(err).Msg("the ledger is not applied yet; reads of the topics wait until it is")
		err = nil
	}
	return err
}

// rebuild restores a lost registry, and reports it.
func (n *node) rebuild(ctx context.Context, nc *nats.Conn, reg *registry.Registry, db *tables.DB) error {
	n.log.Warn().Msg("the registry was lost: rebuilding it from SHARDS and ClickHouse")
	n.inputs.starts(ops.Because(ops.Recovering, "the registry was lost, and is rebuilt from SHARDS and ClickHouse"))
	r, err := repair.New(ctx, repair.Config{NC: nc, Registry: reg, DB: db, Check: router.FramesOf([]byte(n.s.PIIKey)), HasKey: n.s.PIIKey != ""})
	if err != nil {
		return err
	}
	plan, err := r.Plan(ctx, "")
	if err != nil {
		return err
	}
	err = r.Apply(ctx, plan, func(a *repair.Action, err error) {
		n.log.Info().Err(err).Str("action", string(a.Do)).Str("where", a.Where).Str("positions", a.Positions()).Str("state", string(a.State)).Msg(a.Detail)
	})
	for _, note := range plan.Notes {
		n.log.Warn().Msg(note)
	}
	return err
}

// ensureDefault declares app where it is not declared.
func ensureDefault(ctx context.Context, reg *registry.Registry, s *settings) error {
	_, err := reg.Topic(ctx, defaultTopic)
	if !errors.Is(err, schemas.ErrUnknownTopic) {
		return err
	}
	if !slices.ContainsFunc(s.Topics, func(t schemas.Topic) bool { return t.Name == defaultTopic }) {
		s.Topics = append(s.Topics, schemas.NewTopic(defaultTopic))
	}
	return nil
}

// defaultTopic is there on every `up`, so that the first event needs no thought.
const defaultTopic = "app"

// declareTopics applies the topics of the settings and returns all there are. A
// retention that is shorter than the live one is not applied to a topic that has
// events: a file that was edited in passing must not drop any.
func declareTopics(ctx context.Context, reg *registry.Registry, s *settings, log zerolog.Logger) ([]schemas.Topic, error) {
	for _, t := range s.Topics {
		if live, err := reg.Topic(ctx, t.Name); err == nil && live.Tightens(&t) {
			heads, err := reg.Heads(ctx, t.Name)
			if err != nil {
				return nil, err
			}
			if len(heads) > 0 {
				log.Warn().Str("topic", t.Name).Str("now", kept(live)).Str("file", kept(t)).
					Msgf("retention stays as it was, for events would go: almanac topics apply -f %s --dry-run shows which, --yes does it", s.File)
				t.KeepDays, t.Anonymise = live.KeepDays, live.Anonymise
			}
		}
		if s.Profile == profileTest {
			lanes := t.Lanes    // 0: as many as it has
			t, _ = t.Declared() // with its defaults, of which one is changed
			t.Lanes, t.Rotate.Rows = lanes, schemas.TestRotateRows
			t.SQLFresh = cmp.Or(t.SQLFresh, schemas.MinSQLFresh)
		}
		switch _, _, err := reg.Apply(ctx, t, false); {
		case errors.Is(err, registry.ErrRemoving): // which only a running Almanac can end
			log.Warn().Str("topic", t.Name).Msgf("it is being removed, and is not declared: end that with almanac topics rm %s", t.Name)
		case err != nil:
			return nil, configError{fmt.Errorf("declaring the topics of %s: %w", cmp.Or(s.File, "the defaults"), err)}
		}
	}
	return reg.Topics(ctx)
}
