package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/doctor"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// processWait bounds what a process is asked for where a server is away. It answers within 2 s; on a busy machine that takes longer.
const processWait = 10 * time.Second

func (a *app) lag(ctx context.Context, cmd *cobra.Command, args []string) error {
	o := format(cmd, asTable)
	report, err := lagOf(ctx, cmd, optional(args))
	if err != nil {
		return err
	}
	for _, one := range report.Away {
		a.note("%s is away since %s: %s", one.Server, one.Since.Local().Format(time.DateTime), one.Why)
	}
	if len(report.Away) > 0 && !report.At.IsZero() {
		a.note("what is shown was so at %s", report.At.Local().Format(time.DateTime))
	}
	if o == asJSON {
		return a.printJSON(report)
	}
	t := newTable("topic", "not routed", "seconds", "not stored", "seconds")
	numbers(t, "not routed", "not stored")
	for _, l := range report.Topics {
		t.AppendRow(table.Row{l.Topic, l.Unrouted, fmt.Sprintf("%.1f", l.UnroutedSeconds), orUnknown(l.Unstored, "%d"), orUnknown(l.UnstoredSeconds, "%.1f")})
	}
	for _, s := range report.Streams {
		a.note("%s has %s in %s of %s", s.Stream, plural(s.Messages, "message"), schemas.FormatBytes(float64(s.Bytes)), schemas.FormatBytes(float64(s.Limit)))
	}
	return a.printTable(t)
}

// orUnknown is a number, or says that it is not known.
func orUnknown[T any](n *T, as string) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprintf(as, *n)
}

// processHTTP is where a process can be asked that has seen more than a verb: the one that --http names, else the up of the data directory.
// "": none is known.
func (s *settings) processHTTP(up string) string {
	if s.HTTP != "" && s.HTTP != settingOff {
		if named, err := s.ownHTTP(); err == nil {
			return named
		}
	}
	return up
}

// askProcess asks a process for JSON, with the token where there is one.
func (s *settings) askProcess(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, processWait)
	defer cancel()
	if s.Token == "" {
		return ops.Get(ctx, url, into)
	}
	return ops.GetBy(ctx, s.CA, s.Token, url, into)
}

// hinted is an error with what else is to be said of it.
func hinted(err error, more string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; %s", err, more)
}

// lagOfServers asks the servers what waits.
func lagOfServers(ctx context.Context, s *settings, d endpoints, topic string) (*query.LagReport, error) {
	c, err := openBoth(ctx, s, d)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	r, err := query.New(c.nc, c.reg, c.db)
	if err != nil {
		return nil, err
	}
	return r.Lag(ctx, topic)
}

// lagOfProcess begins to ask a process what waits, and returns what waits for its answer, and what gives the question up.
func lagOfProcess(ctx context.Context, s *settings, base, topic string) (answer func() (*query.LagReport, error), drop func()) {
	ctx, drop = context.WithCancel(ctx)
	var of query.LagReport
	done := make(chan error, 1)
	if base == "" {
		return nil, drop
	}
	go func() {
		err := s.askProcess(ctx, base+"/v1/lag?topic="+url.QueryEscape(topic), &of)
		if err == nil && of.Away == nil {
			err = errors.New("it is not Almanac's")
		}
		done <- err
	}()
	return func() (*query.LagReport, error) {
		err := <-done
		return &of, err
	}, drop
}

// lagOf reads what waits. Where a server is away a process that has seen more is asked instead, if one is known.
func lagOf(ctx context.Context, cmd *cobra.Command, topic string) (*query.LagReport, error) {
	s, err := load(cmd)
	if err != nil {
		return nil, err
	}
	d, err := findEndpoints(s, bothServers)
	if err != nil {
		return nil, err
	}
	base := s.processHTTP(d.http)
	answer, drop := lagOfProcess(ctx, s, base, topic) // beside the connections, which take their time where a server stands still
	defer drop()
	d.natsWait = doctor.ServerWait
	report, err := lagOfServers(ctx, s, d, topic)
	if errors.Is(err, schemas.ErrUnknownTopic) || err == nil && len(report.Away) == 0 || ctx.Err() != nil {
		return report, err
	}
	if base == "" {
		return report, hinted(err, "a gateway knows since when, and what waited then: name one by --http")
	}
	of, asked := answer()
	if asked != nil {
		return report, hinted(err, base+" was asked too: "+inWords(asked))
	}
	return of, nil
}
