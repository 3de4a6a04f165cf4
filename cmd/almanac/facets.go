package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
)

func (a *app) facetsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "facets TOPIC FIELDS",
		Short: "Count the most frequent values of fields",
		Long: fmt.Sprintf(`Count the most frequent values of 1 to %d fields, with commas between, in the newest shards of a topic, events
that were just accepted among them. A field is a column, a promoted field or
attributes.NAME.`, query.MaxFacetFields),
		Example: `  almanac facets app level,service --from -1h
  almanac facets app attributes.host --where "level = 'error'" --values 20`,
		Args: arguments(2, 2),
		RunE: a.does(a.facets),
	}
	flagsOf(cmd, &operations.Facets, "from", "to", "where", "n", "shards")
	outputFlag(cmd, asTable, asJSON)
	return cmd
}

func (a *app) fieldsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "fields TOPIC",
		Short:   "List the fields that events of a topic have",
		Long:    "List a topic's columns, and the attributes that its newest events have, the most frequent first.",
		Example: "  almanac fields app --prefix attributes.http",
		Args:    arguments(1, 1),
		RunE:    a.does(a.fields),
	}
	completionFlags(cmd)
	return cmd
}

func (a *app) valuesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "values TOPIC FIELD",
		Short:   "List values of a field in a topic's newest events",
		Long:    "List values of a field in a topic's newest events, the most frequent first. `almanac facets` counts them exactly.",
		Example: "  almanac values app service --prefix api",
		Args:    arguments(2, 2),
		RunE:    a.does(a.values),
	}
	completionFlags(cmd)
	return cmd
}

func (a *app) lagCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lag [TOPIC]",
		Short: "Show what was accepted and waits, and how full the streams are",
		Long: `Show how many events were accepted and are not routed, or not stored in ClickHouse, by topic; and how full the streams are.

While a server is away a process says since when, and what waited then: the up on the data
directory, or the gateway that --http names.`,
		Args: arguments(0, 1),
		RunE: a.does(a.lag),
	}
	keyFlags(cmd.Flags(), "http", "token", "ca_file")
	outputFlag(cmd, asTable, asJSON)
	return cmd
}

func completionFlags(cmd *cobra.Command) {
	flagsOf(cmd, &operations.Fields, "from", "to", "prefix", "limit")
	outputFlag(cmd, asTable, asJSON)
}

// answers reads one answer, prints it as JSON, or as the table that f makes of it.
func answers[T any](ctx context.Context, a *app, cmd *cobra.Command, ask func(context.Context, *query.Reader) (T, error), f func(T) table.Writer) error {
	o := format(cmd, asTable)
	return whenOpen(ctx, cmd, func(_ *session, r *query.Reader) error {
		answer, err := ask(ctx, r)
		if err != nil {
			return err
		}
		if o == asJSON {
			return a.printJSON(answer)
		}
		return a.printTable(f(answer))
	})
}

func (a *app) facets(ctx context.Context, cmd *cobra.Command, args []string) error {
	f := reading{flags: cmd}
	req := query.FacetRequest{
		Topic: args[0], Fields: query.SplitNames(args[1]), From: f.time("from"), To: f.until("to"), Where: f.flag("where"),
		MaxValues: f.whole("values", 1, query.MaxFacetValues), MaxShards: f.whole("shards", 1, query.MaxFacetShards),
		Notice: func(s string) { a.note("%s", s) },
	}
	if f.err != nil {
		return f.err
	}
	return answers(ctx, a, cmd, func(ctx context.Context, r *query.Reader) (*query.Facets, error) { return r.Facets(ctx, req) }, func(found *query.Facets) table.Writer {
		t := newTable("field", "value", "events")
		numbers(t, "events")
		for _, facet := range found.Facets {
			for _, v := range facet.Values {
				t.AppendRow(table.Row{facet.Field, printable(v.Value), v.Count})
			}
			if facet.Other > 0 {
				t.AppendRow(table.Row{facet.Field, "(others)", facet.Other})
			}
			if facet.Empty > 0 {
				t.AppendRow(table.Row{facet.Field, "(without one)", facet.Empty})
			}
			if facet.Approximate {
				a.note("%s has more values than are told apart: counts may be too low", facet.Field)
			}
		}
		a.sampled(found.Count, false, found.Notes)
		return t
	})
}

// sampled says what an answer was made of.
func (a *app) sampled(events uint64, more bool, notes []string) {
	for _, n := range notes {
		a.note("note: %s", n)
	}
	of := ""
	if more {
		of = ", the newest"
	}
	a.note("of %s%s", plural(events, "event"), of)
}

func completionRequest(cmd *cobra.Command, topic string) (query.CompletionRequest, error) {
	f := reading{flags: cmd}
	req := query.CompletionRequest{Topic: topic, From: f.time("from"), To: f.until("to"), Prefix: f.flag("prefix"), Limit: f.whole("limit", 1, query.MaxCompletions)}
	return req, f.err
}

func (a *app) fields(ctx context.Context, cmd *cobra.Command, args []string) error {
	req, err := completionRequest(cmd, args[0])
	if err != nil {
		return err
	}
	return answers(ctx, a, cmd, func(ctx context.Context, r *query.Reader) (*query.FieldNames, error) { return r.Fields(ctx, req) }, func(found *query.FieldNames) table.Writer {
		t := newTable("field", "takes", "events")
		numbers(t, "events")
		for _, f := range found.Fields {
			t.AppendRow(table.Row{printable(f.Name), f.Want, f.Count})
		}
		a.sampled(found.Read, found.Sampled, found.Notes)
		return t
	})
}

func (a *app) values(ctx context.Context, cmd *cobra.Command, args []string) error {
	req, err := completionRequest(cmd, args[0])
	if err != nil {
		return err
	}
	if req.Field = args[1]; req.Field == "" {
		return usageError{errors.New("values needs the name of a field")}
	}
	return answers(ctx, a, cmd, func(ctx context.Context, r *query.Reader) (*query.ValueNames, error) { return r.Values(ctx, req) }, func(found *query.ValueNames) table.Writer {
		t := newTable("value", "events")
		numbers(t, "events")
		for _, v := range found.Values {
			t.AppendRow(table.Row{printable(v.Value), v.Count})
		}
		a.sampled(found.Read, found.Sampled, found.Notes)
		return t
	})
}
