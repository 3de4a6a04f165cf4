package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/doctor"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

func (a *app) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that everything answers, and say what to do where it does not",
		Long: `Check that everything answers, and say what to do where it does not. A process says since when
a server is away: the up on the data directory, or the gateway that --http names.

With --nats-monitor each NATS server is asked at its monitoring port too: its version, whether it writes
to disk before it acknowledges, its bounds, whether it is healthy, and how far it lags. No
credentials are sent there.`,

		Annotations: exits{exitOK: "all is well", exitFailed: "a check failed", exitPartial: "no check failed, and some warn"}.declared(),
		Args:        arguments(0, 0),
		RunE:        a.does(a.doctor),
	}
	addFlags(cmd, namesFlag("nats-monitor", "`URLS` of the monitoring ports of the NATS servers, such as http://nats-1:8222, by commas"))
	keyFlags(cmd.Flags(), "http", "token", "ca_file")
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	return cmd
}

func (a *app) doctor(ctx context.Context, cmd *cobra.Command, _ []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	monitors, _ := cmd.Flags().GetStringSlice("nats-monitor")
	if len(monitors) > doctor.MaxMonitors {
		return usageError{fmt.Errorf("--nats-monitor: %d URLs, it takes %d at most", len(monitors), doctor.MaxMonitors)}
	}
	for _, m := range monitors {
		if err := doctor.CheckMonitor(m); err != nil {
			return usageError{fmt.Errorf("--nats-monitor %q: %w", privacy.MaskedURL(m), err)}
		}
	}
	found := examine(ctx, s, monitors)
	plain := *a
	if format(cmd, asTable) == asTable {
		plain.stdout = unfiltered(a.stdout) // for its colours: what others wrote is printable
	}
	err = printRows(&plain, cmd, found, func() table.Writer {
		t := newTable("", "check", "found")
		for _, f := range found {
			f.Found, f.Do = printableLines(singular(f.Found)), printableLines(singular(f.Do))
			if f.Do != "" {
				f.Found += "\n→ " + f.Do
			}
			t.AppendRow(table.Row{asIs(mark(f.Status, colours(a.stdout))), f.Check, asIs(f.Found)})
		}
		return t
	})
	if err != nil {
		return err
	}
	count := map[string]int{}
	for _, f := range found {
		count[f.Status]++
	}
	switch {
	case count[doctor.Fail] > 0:
		a.note("%d of %d checks failed", count[doctor.Fail], len(found))
		return errSaid
	case count[doctor.Warn] > 0:
		a.note("%d of %d checks warn", count[doctor.Warn], len(found))
		return errPartial
	}
	return nil
}

func mark(status string, colour bool) string {
	c := map[string]text.Color{doctor.OK: text.FgGreen, doctor.Warn: text.FgYellow, doctor.Fail: text.FgRed}[status]
	if !colour {
		return status
	}
	return c.Sprint(status)
}

// examine runs the checks on the Almanac that the settings lead to.
func examine(ctx context.Context, s *settings, monitors []string) []doctor.Finding {
	d, err := findEndpoints(s, bothServers)
	if err != nil {
		said, next := translated(err)
		return []doctor.Finding{{Check: "addresses", Status: doctor.Fail, Found: said, Do: next}}
	}
	where := "of the up on " + d.dir
	if d.dir == "" {
		where = "named by the settings"
	}
	first := doctor.Finding{Check: "addresses", Status: doctor.OK,
		Found: fmt.Sprintf("%s: NATS %s, ClickHouse %s", where, privacy.MaskedURL(d.nats), privacy.MaskedURL(d.clickhouse))}
	var c *session
	var db *tables.DB
	defer func() {
		if c != nil {
			_ = c.Close()
		}
		if db != nil {
			_ = db.Close()
		}
	}()
	private := ""
	if d.dir != "" {
		private = embedded.AddressesFile(d.dir)
	}
	var gatewayTables func() (*tables.DB, error)
	if s.GatewayUser != "" {
		gatewayTables = func() (*tables.DB, error) {
			as, err := asReads(s, d)
			if err != nil {
				return nil, err
			}
			return openFixed(as)
		}
	}
	return append([]doctor.Finding{first}, doctor.Run(ctx, doctor.Config{
		OpenGatewayTables: gatewayTables,
		OpenNATS: func(ctx context.Context, within time.Duration) (*nats.Conn, *registry.Registry, error) {
			d.natsWait = within
			nc, err := streams.Connect(d.nats, natsOptions(s, d, "cli")...)
			if err != nil {
				return nil, nil, err
			}
			c = &session{endpoints: d, nc: nc, settings: s}
			c.reg, err = registry.Open(ctx, nc)
			return nc, c.reg, err
		},
		OpenTables: func() (*tables.DB, error) {
			var err error
			db, err = openFixed(d)
			return db, err
		},
		Monitors: monitors, NATSNeeds: doctor.NATSNeeds(embedded.NATSNeeds()),
		NATSURL: d.nats, Limits: streamLimits(s, schemas.DefaultStreamLimits), ReaderUser: d.readerUser, ReaderPassword: d.readerPassword,
		Away: func(ctx context.Context) ([]query.Away, error) {
			base := s.processHTTP(d.http)
			if base == "" {
				return nil, nil
			}
			var of query.Status
			err := s.askProcess(ctx, base+"/v1/status", &of)
			return of.Away, err
		},
		HTTP: d.http, OwnEngine: d.followClickHouse, Dir: d.dir, Free: func() (free, all int64, err error) { return embedded.DiskBytes(d.dir) }, Translate: translated,
		Private: private,
	})...)
}
