package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/gateway/api"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	querytimers "github.com/almanac-events/almanac/internal/query/timers"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/timers"
)

// gatewayParts makes what a gateway needs over the servers. storing says why nothing can be stored;
// nil: it is not known. second is a connection of the
// reader's own, and pages are the tables by an account that reads alone.
func gatewayParts(ctx context.Context, nc, second *nats.Conn, reg *registry.Registry, db, pages *tables.DB, storing func() error, s *settings, n *processNumbers, log zerolog.Logger) (gateway.Parts, error) {
	log = log.With().Str("part", "gateway").Logger()
	again := newRationer()
	var own []string
	if s.AuditReads != "" {
		own = []string{s.AuditReads}
	}
	p, err := pool.New(pool.Config{
		Own: own,
		NC:  nc, Topic: reg.Topic, Storing: storing, Erased: reg.ErasedSince, Follow: reg.FollowTopics, PrivacyKey: []byte(s.PIIKey),
		Hooks: n.inputs().Pool(),
		OnError: func(topic string, err error) {
			if more, ok := again.pass(topic); ok {
				log.Warn().Err(err).Str("topic", topic).Int("more", more).Msg("sending again")
			}
		},
	})
	if err != nil {
		return gateway.Parts{}, err
	}
	r, err := query.NewFollowing(nc, second, reg, pages)
	if err != nil {
		return gateway.Parts{}, err
	}
	reads, err := readParts(ctx, nc, reg, db, r, s)
	if err != nil {
		return gateway.Parts{}, err
	}
	reads.Storing = storing
	reads.OnError = func(err error) {
		if more, ok := again.pass("reads"); ok {
			log.Warn().Err(err).Int("more", more).Msg("jobs")
		}
	}
	return gateway.Parts{
		Pool: p, Reads: reads,
		Background: []func(context.Context) error{func(ctx context.Context) error {
			defer r.Close()
			return r.Run(ctx)
		}, func(ctx context.Context) error { // who asks hears since when a server is away
			for backoff.Sleep(ctx, lookEvery) == nil {
				r.Servers(ctx)
			}
			return nil
		}},
		Stored: func(ctx context.Context, topics []string) error {
			pending, err := r.WaitStored(ctx, topics, storedWait, nil)
			if err == nil && pending > 0 {
				err = fmt.Errorf("%d events are not in ClickHouse yet", pending)
			}
			return err
		},
	}, nil
}

// readParts makes what the API reads and begins jobs with.
func readParts(ctx context.Context, nc *nats.Conn, reg *registry.Registry, db *tables.DB, r *query.Reader, s *settings) (api.Config, error) {
	c := api.Config{Reader: r, Registry: reg}
	v, err := verify.New(nc, reg, db)
	if err != nil {
		return c, err
	}
	c.Verify = func(ctx context.Context, topic string, tell func(shards, of int)) (*verify.Report, error) {
		return v.Telling(tell).Run(ctx, topic)
	}
	if c.Replayer, err = replay.New(ctx, replay.Config{NATS: nc, Registry: reg, DB: db, Reader: r}); err != nil {
		return c, err
	}
	if c.Letters, err = deadletters.New(ctx, nc, reg, []byte(s.PIIKey), db); err != nil {
		return c, err
	}
	c.Timers = func(ctx context.Context, topic string) (*timers.Timers, error) {
		return timers.Open(ctx, nc, reg.WithThird(db), topic, timers.Config{Archive: &querytimers.Archive{DB: db}})
	}
	c.Documents = func(ctx context.Context, topic string) (*documents.Collection, error) {
		return documents.Open(ctx, nc, topic, documents.Config{By: "http", Archive: archive.New(reg, db)})
	}
	c.Eraser = func(ctx context.Context, progress func(erasure.Progress)) (*erasure.Eraser, error) {
		return erasure.New(ctx, erasure.Config{
			Registry: reg, Reader: r, DB: db, ReplayWindow: s.ReplayWindow, PrivacyKey: []byte(s.PIIKey), Progress: progress,
		})
	}
	return c, nil
}

// lookEvery is how often a gateway looks whether its servers are there.
const lookEvery = 5 * time.Second

// storedWait is more than a request waits for SQL.
const storedWait = time.Minute
