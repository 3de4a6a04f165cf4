package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/internal/bench"
	"github.com/almanac-events/almanac/internal/embedded"
)

// up starts an `almanac up`, whose ClickHouse all contestants use.
func (c *contest) up(ctx context.Context, program string) (stop func(), err error) {
	dir := filepath.Join(c.dir, "data")
	cmd := exec.CommandContext(ctx, program, "up", "--data", dir, "--ports", "auto", "--http", "off")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	log, err := os.Create(filepath.Join(c.dir, "up.log"))
	if err != nil {
		return nil, err
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = log.Close()
	}
	deadline := time.Now().Add(time.Minute)
	for {
		if c.addresses, err = embedded.ReadAddresses(dir); err == nil {
			if err = c.open(); err == nil {
				err = freshen(ctx, program, dir)
			}
			if err == nil {
				return stop, nil
			}
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			stop()
			text, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("almanac up did not get ready: %w: %s", err, text)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// freshen makes SQL as fresh as it can be, about as fresh as the others are: time is taken
// until the last row.
func freshen(ctx context.Context, program, dir string) error {
	cmd := exec.CommandContext(ctx, program, "topics", "apply", "app", "--sql-fresh", "1s", "--data", dir)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("topics apply: %w: %s", err, text)
	}
	return nil
}

func almanacItself() *contestant {
	return &contestant{
		Name:       "Almanac",
		Durability: "on disk (fsync) before it is acknowledged, stored exactly once through any crash, on disk again in ClickHouse (fsync)",
		run: func(ctx context.Context, c *contest) (time.Duration, error) {
			table := c.addresses.Database + ".app"
			before, err := c.rows(ctx, table)
			if err != nil {
				return 0, err
			}
			began := time.Now()
			g, gctx := errgroup.WithContext(ctx)
			for n := range c.senders {
				g.Go(func() error {
					return bench.ProduceAll(gctx, c.addresses.NATS, "app", c.share(uint64(n+1)))
				})
			}
			if err := g.Wait(); err != nil {
				return 0, err
			}
			err = c.waitRows(ctx, table, before+uint64(c.events/c.senders*c.senders))
			return time.Since(began), err
		},
	}
}
