package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/ops/families"
	"github.com/almanac-events/almanac/internal/ops/metrics"
	querytimers "github.com/almanac-events/almanac/internal/query/timers"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/timers/callback"
	"github.com/almanac-events/almanac/internal/timers/dispatch"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// timerKeys are the settings of a dispatcher.
var timerKeys = []string{"timers_allow_cidrs", "timers_secrets"}

func (a *app) timersRunCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run one dispatcher, for production",
		Long: `Run one dispatcher against a NATS elsewhere: it calls timers at their time. Any
number may run: they share the lanes, and one that dies is taken over within 5 s.

With --http it says its numbers at /metrics, for Prometheus.

Loopback, private and link-local addresses are not called, unless the operator
allows them by --timers-allow-cidrs.`,
		Example: `  almanac timers run --nats nats://nats-1:4222
  ALMANAC_TIMERS_ALLOW_CIDRS=10.1.0.0/16:9000 ALMANAC_TIMERS_SECRETS_FILE=secrets.txt almanac timers run`,
		Args: arguments(0, 0),
		RunE: a.does(a.timersRun),
	}
	keyFlags(cmd.Flags(), "http", "replicas")
	keyFlags(cmd.Flags(), drainKeys...)
	keyFlags(cmd.Flags(), timerKeys...)
	return cmd
}

func (a *app) timersRun(ctx context.Context, cmd *cobra.Command, _ []string) error {
	return a.runSingle(ctx, cmd, "timers", natsAlone, func(ctx context.Context, one *single) error {
		reg, err := one.setup(ctx, schemas.StreamTimers, schemas.KVStream)
		if err != nil {
			return err
		}
		d, err := newDispatcher(ctx, one.nc, reg, one.s, one.log)
		if err != nil {
			return err
		}
		one.parts, one.numbers = []part{d}, []metrics.Source{families.Dispatcher(d)}
		return nil
	})
}

// newDispatcher makes a dispatcher with its callbacks.
func newDispatcher(ctx context.Context, nc *nats.Conn, reg *registry.Registry, s *settings, log zerolog.Logger) (*dispatch.Dispatcher, error) {
	log = log.With().Str("part", "timers").Logger()
	again := newRationer()
	caller := callback.New(callback.Config{AllowCIDRs: s.TimersAllowCIDRs, Secrets: s.TimersSecrets, PerHost: timer.CallsPerHost})
	return dispatch.New(ctx, nc, dispatch.Config{Registry: reg, Caller: caller, PerHost: timer.CallsPerHost, Hooks: dispatch.Hooks{
		Ended: func(r *timer.Record) {
			if r.Op != timer.Failed {
				log.Debug().Str("group", r.Key.Group).Str("id", r.Key.ID).Str("outcome", string(r.Op)).Int64("attempt", r.Attempt).Dur("late", r.Call.Late).Msg("called")
			} else if more, ok := again.pass("failed " + r.Key.Group + r.Call.Error); ok {
				log.Warn().Str("group", r.Key.Group).Str("id", r.Key.ID).Str("error", r.Call.Error).Int("status", r.Call.Status).Int64("attempt", r.Attempt).Int("more", more).
					Msg("a timer failed; almanac timers history shows its attempts")
			}
		},
		Fault: func(topic string, lane int, err error) {
			if more, ok := again.pass("fault " + topic + strconv.Itoa(lane)); ok {
				log.Warn().Err(err).Str("topic", topic).Int("lane", lane).Int("more", more).Msg("trying again")
			}
		},
	}})
}

func (a *app) timersStatusCommand() *cobra.Command {
	status := &cobra.Command{
		Use: "status", Short: "Show how many timers each group has, and what is overdue", Args: arguments(0, 0),
		RunE: a.does(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			if text, _ := cmd.Flags().GetString("calls"); text != "" {
				return a.timersCalls(ctx, cmd, text)
			}
			return whenTimers(ctx, cmd, false, func(_ *session, t *timers.Timers) error {
				rows, err := t.Status(ctx)
				if err != nil {
					return err
				}
				return printRows(a, cmd, rows, func() table.Writer {
					w := newTable("group", "pending", "firing", "overdue", "oldest s", "done", "failed", "cancelled", "largest slot", "to mean", "holds", "state", "why overdue")
					for _, r := range rows {
						state := "running"
						if r.Paused {
							state = "paused"
						}
						slot := ""
						if r.FullestSlot != nil {
							slot = strconv.Itoa(*r.FullestSlot)
						}
						w.AppendRow(table.Row{r.Group, r.Pending, r.Firing, r.Overdue, fmt.Sprintf("%.1f", r.OldestSeconds), r.Done, r.Failed, r.Cancelled, slot, fmt.Sprintf("%.2f", r.LargestSlot), schemas.FormatBytes(float64(r.Bytes)), state, r.Why})
					}
					return w
				})
			})
		}),
	}
	addFlags(status, textFlag("calls", "show the calls of this `TIME` by result and their lateness instead, such as 1h"))
	outputFlag(status, asTable, asJSON, asNDJSON)
	return status
}

// timersCalls shows the calls since a length of time ago, from ClickHouse.
func (a *app) timersCalls(ctx context.Context, cmd *cobra.Command, text string) error {
	span, ok := parseSpan(text)
	if !ok || span <= 0 {
		return usageError{fmt.Errorf("--calls: %q is not a length of time, such as 1h", text)}
	}
	return whenServed(ctx, cmd, func(c *session) error {
		topic, _ := cmd.Flags().GetString("topic")
		rows, err := querytimers.Archive{DB: c.db}.Calls(ctx, topic, span)
		if err != nil {
			return err
		}
		return printRows(a, cmd, rows, func() table.Writer {
			w := newTable("group", "calls", "done", "failed", "retry", "rescheduled", "late p50 ms", "late p99 ms", "took p99 ms")
			for _, r := range rows {
				w.AppendRow(table.Row{r.Group, r.Calls, r.Done, r.Failed, r.Retry, r.Rescheduled, r.LateP50, r.LateP99, r.TookP99})
			}
			return w
		})
	})
}
