package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) queryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "query TOPIC",
		Short: "Find events, the newest first",
		Long: `Find events, the newest first. An event is found as soon as it was accepted,
before it is in ClickHouse. Times are RFC 3339 or a distance back such as -15m.

One page is printed; when there are more, its cursor continues. With -o json it
is one document with events, cursor and the shards that were read.`,
		Example: `  almanac query app --from -15m
  almanac query auth --where "level = 'error' AND user_id IN ('u-7', 'u-8')"
  almanac query auth --where "attributes.actor.login contains 'bot'" -o json`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(a.query),
	}
	f := cmd.Flags()
	f.String("from", "", "`TIME` of the first event")
	f.String("to", "", "`TIME` of the last event")
	f.String("where", "", "`FILTER` over columns, promoted fields and attributes")
	f.Int("limit", query.DefaultLimit, fmt.Sprintf("events on a page, 1 to %d", query.MaxLimit))
	f.String("cursor", "", "`CURSOR` of the page before")
	f.String("order", "desc", "desc (newest first) or asc")
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	_ = cmd.RegisterFlagCompletionFunc("order", cobra.FixedCompletions([]string{"desc", "asc"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) query(ctx context.Context, cmd *cobra.Command, args []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	o, err := format(cmd, a.forEvents(), asTable, asJSON, asNDJSON)
	if err != nil {
		return err
	}
	req, err := pageRequest(cmd, args[0])
	if err != nil {
		return err
	}
	c, r, err := open(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	page, err := r.Query(ctx, req)
	if err != nil {
		return err
	}
	switch o {
	case asJSON:
		return a.printJSON(page)
	case asNDJSON:
		err = printLines(a, page.Events)
	default:
		err = a.printTable(eventTable(page.Events))
	}
	for _, n := range page.Notes {
		a.note("note: %s", n)
	}
	if page.Cursor != "" {
		a.note("there may be more: --cursor %s", page.Cursor)
	}
	return err
}

func pageRequest(cmd *cobra.Command, topic string) (query.Request, error) {
	f := reading{flags: cmd}
	limit, _ := cmd.Flags().GetInt("limit")
	req := query.Request{
		Topic: topic, Where: f.flag("where"), Cursor: f.flag("cursor"), Limit: limit,
		From: f.time("from"), To: f.time("to"),
	}
	switch order := f.flag("order"); order {
	case "asc":
		req.Ascending = true
	case "desc":
	default:
		f.fail("order", fmt.Errorf("%q is neither desc nor asc", order))
	}
	if limit < 1 {
		f.fail("limit", fmt.Errorf("%d is not 1 to %d", limit, query.MaxLimit))
	}
	return req, f.err
}

func (f *reading) time(name string) time.Time {
	t, err := parseTime(f.flag(name), time.Now())
	f.fail(name, err)
	return t
}

// eventTable shows what people look at first, one line for an event; -o ndjson
// has all of it.
func eventTable(events []json.RawMessage) table.Writer {
	t := newTable("time", "level", "service", "type", "user", "message", "more")
	short := func(s string, n int) string { return text.Snip(s, n, "…") }
	t.SetColumnConfigs([]table.ColumnConfig{
		{Name: "message", WidthMax: 80, WidthMaxEnforcer: short},
		{Name: "more", WidthMax: 80, WidthMaxEnforcer: short},
	})
	for _, raw := range events {
		e := readEvent(raw)
		t.AppendRow(table.Row{e.ts, e.level, e.service, e.kind, e.user, e.message, e.more})
	}
	return t
}

// event is one event for people.
type event struct{ ts, level, service, kind, user, message, more string }

// plainColumns are shown in columns of their own, or are of no interest to people.
var plainColumns = []string{
	schemas.ColTs, schemas.ColLevel, schemas.ColService, schemas.ColType, schemas.ColUserID, schemas.ColMessage, schemas.ColAttributes,
	schemas.ColID, schemas.ColMonth, schemas.ColShard, schemas.ColPos,
}

func readEvent(raw json.RawMessage) event {
	var row map[string]json.RawMessage
	if err := json.Unmarshal(raw, &row); err != nil {
		return event{message: printable(string(raw))}
	}
	get := func(name string) string { return printable(plainText(row[name])) }
	e := event{
		ts: get(schemas.ColTs), level: get(schemas.ColLevel), service: get(schemas.ColService),
		kind: get(schemas.ColType), user: get(schemas.ColUserID), message: get(schemas.ColMessage),
	}
	more := map[string]string{}
	for name, v := range row {
		// A promoted field an event lacks is its type's zero.
		if s := plainText(v); !slices.Contains(plainColumns, name) && !slices.Contains([]string{"", "0", "false"}, s) {
			more[name] = s
		}
	}
	var attributes map[string]string
	_ = json.Unmarshal(row[schemas.ColAttributes], &attributes) // what is no map is not shown
	for name, v := range attributes {
		more[name] = v
	}
	e.more = printable(pairs(more))
	return e
}

// plainText is a JSON value as people write it.
func plainText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// pairs is name=value, by name.
func pairs(m map[string]string) string {
	out := make([]string, 0, len(m))
	for name, v := range m {
		if strings.ContainsAny(v, " \"\n\t") {
			v = fmt.Sprintf("%q", v)
		}
		out = append(out, name+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
