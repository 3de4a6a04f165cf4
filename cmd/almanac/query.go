package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

func (a *app) queryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "query TOPIC",
		Short: "Find events, the newest first",
		Long: `Find events, the newest first. An event is found as soon as it was accepted,
before it is in ClickHouse. Times are RFC 3339 or a distance back such as -15m.

Events are printed until there are --limit of them or no more; the cursor that is
printed then continues. One read looks through eight shards at most, so a rare filter
takes several; --page ends after the first. With -o json they are one document, with
events, cursor, the shards that were read, and back: the cursor of the page before the
first event, also where that has yet to come. A cursor keeps the range of time of its
first page.

--count and --histogram count instead, exactly, the events that are not stored
yet among them.`,
		Example: `  almanac query app --from -15m
  almanac query auth --where "level = 'error' AND user_id IN ('u-7', 'u-8')"
  almanac query auth --where "attributes.actor.login contains 'bot'" -o json
  almanac query auth --user u-7 --from -1d
  almanac query auth --fields ts,user_id,attributes.host
  almanac query auth --count --where "level = 'error'"
  almanac query auth --from -1h --histogram 1m --by level`,
		Args: arguments(1, 1),
		RunE: a.does(a.query),
	}
	flagsOf(cmd, &operations.Events, "from", "to", "where", "limit", "cursor", "order", "fields")
	addFlags(cmd,
		textsFlag("user", "`USER` whose events to find, by the user's own name also where the topic hashes it; may be given several times"),
		switchFlag("page", "end after one page, also where it is short or empty and has a cursor"),
		switchFlag("count", "count the events instead"),
		textFlag("histogram", "count the events of each `STEP` of time instead: 1m, 1d, 7d, 1mo"),
		switchFlag("explain", "say what ClickHouse would read for the page, and read nothing"),
	)
	for _, name := range []string{"zone", "by"} {
		p := flagOf(&operations.Histogram, name)
		p.Help = "with --histogram: " + p.Help
		addFlags(cmd, p)
	}
	outputFlag(cmd, asTable, asJSON, asNDJSON, asCSV)
	return cmd
}

func (a *app) query(ctx context.Context, cmd *cobra.Command, args []string) error {
	if counts(cmd) {
		return a.stats(ctx, cmd, args[0])
	}
	o := format(cmd, a.forEvents())
	req, err := pageRequest(cmd, args[0])
	if err != nil {
		return err
	}
	req.Notice = a.notice
	return whenOfUsers(ctx, cmd, req.Topic, &req.Where, func(r *query.Reader) error {
		if explain, _ := cmd.Flags().GetBool("explain"); explain {
			plan, err := r.Explain(ctx, req)
			if err != nil {
				return err
			}
			if o == asJSON || o == asNDJSON {
				return printLines(a, []query.Estimate{plan})
			}
			_, err = fmt.Fprintf(a.stdout, "at most %s in %s of %s\n", plural(plan.Rows, "row"), plural(plan.Parts, "part"), counted(len(plan.Shards), "shard"))
			return err
		}
		return a.queryPages(ctx, cmd, r, req, o)
	})
}

// queryPages prints what a query finds, page after page: lines as they come, a table or
// a document at the end.
func (a *app) queryPages(ctx context.Context, cmd *cobra.Command, r *query.Reader, req query.Request, o string) error {
	rows := []json.RawMessage{} // of a table or a document: at most query.MaxLimit
	f := following{page: r.Query, print: func(events []json.RawMessage) error { return printLines(a, events) }}
	f.onePage, _ = cmd.Flags().GetBool("page")
	switch o {
	case asNDJSON:
	case asCSV:
		topic, err := r.Registry().Topic(ctx, req.Topic)
		if err != nil {
			return err
		}
		sheet, err := query.NewCSV(a.stdout, &topic, req.Fields)
		if err != nil {
			return err
		}
		f.print = sheet.Write
	default:
		f.print = func(events []json.RawMessage) error {
			rows = append(rows, events...)
			return nil
		}
	}
	var end func()
	f.progress, end = a.pageProgress()
	whole, err := f.run(ctx, req)
	end()
	whole.Cursor, whole.Back = nextPage(cmd, whole.Cursor), nextPage(cmd, whole.Back)
	stopped := err != nil && ctx.Err() != nil
	if err != nil && !stopped {
		return err
	}
	switch {
	case o == asTable && len(req.Fields) > 0:
		err = a.printTable(fieldTable(req.Fields, rows))
	case o == asTable:
		topic, _ := r.Registry().Topic(ctx, req.Topic) // without it the columns of kind log are shown
		err = a.printTable(eventTable(&topic, rows))
	case o == asJSON && stopped && whole.Cursor == "": // without one it would say that this is all
		return errInterrupted
	case o == asJSON: // which has the notes and the cursor
		whole.Events = rows
		if err := a.printJSON(&whole); err != nil || !stopped {
			return err
		}
		return errInterrupted
	default:
		err = nil
	}
	for _, n := range whole.Notes {
		a.note("note: %s", n)
	}
	if err == nil && o == asTable {
		err = a.noteRepeats(ctx, r, req.Topic)
	}
	if whole.Cursor != "" {
		a.note("there may be more: --cursor %s", whole.Cursor)
	}
	if stopped {
		return errInterrupted
	}
	return err
}

// noteRepeats says how many events of a topic came before and do not count.
func (a *app) noteRepeats(ctx context.Context, r *query.Reader, topic string) error {
	t, err := r.Registry().Topic(ctx, topic)
	if err != nil || !t.HasOnce() {
		return err
	}
	n, err := derived.Of(r.DB()).Repeats(ctx, topic)
	if n > 0 {
		a.note("note: %s of the topic came before and must not count; in SQL %s leaves them out", plural(n, "event"), topic+schemas.ViewOnce)
	}
	return err
}

// whenOfUsers is whenOpen for a filter, to which it adds the users of --user.
func whenOfUsers(ctx context.Context, cmd *cobra.Command, topic string, where *string, f func(*query.Reader) error) error {
	return whenOpen(ctx, cmd, func(c *session, r *query.Reader) (err error) {
		if *where, err = withUsers(ctx, cmd, c, topic, *where); err != nil {
			return err
		}
		return f(r)
	})
}

// withUsers adds the users of --user to a filter, as the topic stores their names.
func withUsers(ctx context.Context, cmd *cobra.Command, c *session, topic, where string) (string, error) {
	names, err := userNames(ctx, cmd, "user", c, topic)
	if err != nil || len(names) == 0 {
		return where, err
	}
	for i, name := range names {
		names[i] = filter.Quote(name)
	}
	of := schemas.ColUserID + " IN (" + strings.Join(names, ", ") + ")"
	if strings.TrimSpace(where) == "" {
		return of, nil
	}
	return "(" + where + ") AND " + of, nil
}

// userNames returns the users that a flag names, as the topic stores their names.
func userNames(ctx context.Context, cmd *cobra.Command, flag string, c *session, topic string) ([]string, error) {
	users, _ := cmd.Flags().GetStringArray(flag)
	if len(users) == 0 {
		return nil, nil
	}
	t, err := c.reg.Topic(ctx, topic)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, u := range users {
		stored, err := privacy.UserNames(&t, u, []byte(c.settings.PIIKey))
		if err != nil {
			return nil, usageError{err}
		}
		names = append(names, stored...)
	}
	return names, nil
}

func pageRequest(cmd *cobra.Command, topic string) (query.Request, error) {
	f := reading{flags: cmd}
	limit, _ := cmd.Flags().GetInt("limit")
	req := query.Request{
		Topic: topic, Where: f.flag("where"), Cursor: f.flag("cursor"), Limit: limit,
		From: f.time("from"), To: f.until("to"), Fields: query.SplitNames(f.flag("fields")),
	}
	switch order := f.flag("order"); order {
	case "asc":
		req.Ascending = true
	case "desc":
	default:
		f.fail("order", fmt.Errorf("%q is neither desc nor asc", order))
	}
	if limit < 1 || limit > query.MaxLimit {
		f.fail("limit", fmt.Errorf("%d is not 1 to %d", limit, query.MaxLimit))
	}
	for _, flag := range []string{"by", "zone"} {
		if f.flag(flag) != "" {
			f.fail(flag, errors.New("it is for --histogram"))
		}
	}
	return req, f.err
}

// notice says what a read will cost before it begins.
func (a *app) notice(text string) { a.note("notice: %s", text) }
