package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// lagWait bounds what an `up` is asked for where a server is away.
const lagWait = 1900 * time.Millisecond

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

// lagOf reads what waits. Where a server is away the `up` of the data directory, which has seen more, is asked instead, if there is one.
func lagOf(ctx context.Context, cmd *cobra.Command, topic string) (*query.LagReport, error) {
	s, err := load(cmd)
	if err != nil {
		return nil, err
	}
	d, err := findEndpoints(s, bothServers)
	if err != nil {
		return nil, err
	}
	var report *query.LagReport
	err = whenOpen(ctx, cmd, func(_ *session, r *query.Reader) (err error) {
		report, err = r.Lag(ctx, topic)
		return err
	})
	if errors.Is(err, schemas.ErrUnknownTopic) || err == nil && len(report.Away) == 0 || ctx.Err() != nil || d.http == "" {
		return report, err
	}
	var of query.LagReport
	ask, cancel := context.WithTimeout(ctx, lagWait)
	defer cancel()
	if ops.Get(ask, d.http+"/v1/lag?topic="+url.QueryEscape(topic), &of) != nil || of.Away == nil {
		return report, err
	}
	return &of, nil
}
