package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/declare"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// foreseen says what declaring each topic does, and refuses what makes events go sooner unless that is agreed to.
func (a *app) foreseen(ctx context.Context, c *session, topics []schemas.Topic, dryRun, agreed bool) ([]declare.Plan, error) {
	cfg := declare.Config{Registry: c.reg, Storage: c.storage}
	if dryRun && c.clickhouse != "" {
		cfg.Count = c.count
	}
	var plans []declare.Plan
	for i := range topics {
		p, err := declare.Foresee(ctx, cfg, topics[i])
		if errors.Is(err, tables.ErrNoCold) {
			err = configError{err}
		}
		if err != nil {
			return nil, err
		}
		if short := p.Now.ShortestDays(); short > 0 && c.settings.ReplayWindow > time.Duration(short)*24*time.Hour {
			a.note("topic %s: its events leave the streams after %s, before the replay window of %.3g days ends: replay then reads ClickHouse, and finds what is left there",
				p.Topic, plural(short, "day"), c.settings.ReplayWindow.Hours()/24)
		}
		if len(p.Loss) > 0 {
			a.tellSooner(p)
			if !agreed && !dryRun {
				return nil, usageError{fmt.Errorf("%w; say --yes if it is meant, or --dry-run to look", &declare.LossError{Topic: p.Topic, Loss: p.Loss})}
			}
		}
		for _, r := range p.Rules {
			if r.Events != nil {
				a.note("topic %s: %s of the last day had %s, which is stored by the rule %s from now on", p.Topic, counted(*r.Events, "event"), r.Field, r.Rule)
			}
		}
		for _, note := range p.Notes {
			a.note("%s", note)
		}
		plans = append(plans, *p)
	}
	return plans, nil
}

// storage asks ClickHouse for its volumes.
func (c *session) storage(ctx context.Context) (out tables.Storage, err error) {
	if c.clickhouse == "" {
		return out, errNoClickHouse
	}
	err = withStorage(ctx, c, func(_ *tables.DB, s tables.Storage) error {
		out = s
		return nil
	})
	return out, err
}

// count counts a topic's events, over connections of its own: a session of NATS alone is not connected to ClickHouse.
func (c *session) count(ctx context.Context, topic, where string, from time.Time) (n uint64, err error) {
	err = withStorage(ctx, c, func(db *tables.DB, _ tables.Storage) error {
		r, err := query.New(c.nc, c.reg, db)
		if err != nil {
			return err
		}
		defer r.Close()
		h, err := r.Histogram(ctx, query.HistogramRequest{Topic: topic, Where: where, From: from})
		if err == nil {
			n = h.Count
		}
		return err
	})
	return n, err
}
