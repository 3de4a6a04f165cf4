package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) queryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "query TOPIC",
		Short: "Find events, the newest first",
		Long: `Find events, the newest first. An event is found as soon as it was accepted,
before it is in ClickHouse. Times are RFC 3339 or a distance back such as -15m.

Events are printed until there are --limit of them or no more; the cursor that is
printed then continues. One read looks through eight shards at most, so a rare filter
takes several; --page ends after the first. With -o json it is one page too: a document
with events, cursor and the shards that were read, whose events may be none although its
cursor has more. A cursor keeps the range of time of its first page.

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
	f := cmd.Flags()
	f.String("from", "", "`TIME` of the first event")
	f.String("to", "", "`TIME` of the last event")
	f.String("where", "", "`FILTER` over columns, promoted fields and attributes")
	f.StringArray("user", nil, "`USER` whose events to find, by the user's own name also where the topic hashes it; may be given several times")
	f.Int("limit", query.DefaultLimit, fmt.Sprintf("how many events at most, 1 to %d", query.MaxLimit))
	f.Bool("page", false, "end after one page, also where it is short or empty and has a cursor")
	f.String("cursor", "", "`CURSOR` of the page before")
	f.String("order", "desc", "desc (newest first) or asc")
	f.String("fields", "", "`NAMES` of columns, promoted fields and attributes.x to show, with commas between")
	f.Bool("count", false, "count the events instead")
	f.String("histogram", "", "count the events of each `STEP` of time, such as 1m, instead")
	f.Bool("explain", false, "say what ClickHouse would read for the page, and read nothing")
	f.String("by", "", "with --histogram: split by `COLUMN` (level, service, type or a promoted lowcardinality field)")
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	_ = cmd.RegisterFlagCompletionFunc("order", cobra.FixedCompletions([]string{"desc", "asc"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) query(ctx context.Context, cmd *cobra.Command, args []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	if counts(cmd) {
		return a.tally(ctx, cmd, s, args[0])
	}
	o, err := format(cmd, a.forEvents(), asTable, asJSON, asNDJSON)
	if err != nil {
		return err
	}
	req, err := pageRequest(cmd, args[0])
	if err != nil {
		return err
	}
	req.Notice = a.notice
	c, r, err := open(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if req.Where, err = withUsers(ctx, cmd, c.reg, s, req.Topic, req.Where); err != nil {
		return err
	}
	if explain, _ := cmd.Flags().GetBool("explain"); explain {
		plan, err := r.Explain(ctx, req)
		if err != nil {
			return err
		}
		if o != asTable {
			return printLines(a, []query.Estimate{plan})
		}
		_, err = fmt.Fprintf(a.stdout, "at most %s in %s of %s\n", plural(plan.Rows, "row"), plural(plan.Parts, "part"), counted(len(plan.Shards), "shard"))
		return err
	}
	if o == asJSON {
		page, err := r.Query(ctx, req)
		if err != nil {
			return err
		}
		return a.printJSON(page)
	}
	return a.queryPages(ctx, cmd, r, req, o)
}

// queryPages prints what a query finds, page after page: lines as they come, a table
// at the end.
func (a *app) queryPages(ctx context.Context, cmd *cobra.Command, r *query.Reader, req query.Request, o string) error {
	var rows []json.RawMessage // of a table: at most query.MaxLimit
	f := following{page: r.Query, print: func(events []json.RawMessage) error { return printLines(a, events) }}
	f.onePage, _ = cmd.Flags().GetBool("page")
	if o == asTable {
		f.print = func(events []json.RawMessage) error {
			rows = append(rows, events...)
			return nil
		}
	}
	var end func()
	f.progress, end = a.pageProgress()
	cursor, notes, err := f.run(ctx, req)
	end()
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
	default:
		err = nil
	}
	for _, n := range notes {
		a.note("note: %s", n)
	}
	if err == nil && o == asTable {
		err = a.noteRepeats(ctx, r, req.Topic)
	}
	if cursor != "" {
		a.note("there may be more: --cursor %s", cursor)
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
	n, err := r.DB().Repeats(ctx, topic)
	if n > 0 {
		a.note("note: %s of the topic came before and do not count; in SQL %s leaves them out", plural(n, "event"), topic+schemas.ViewOnce)
	}
	return err
}

// withUsers adds the users of --user to a filter, as the topic stores their names.
func withUsers(ctx context.Context, cmd *cobra.Command, reg *registry.Registry, s *settings, topic, where string) (string, error) {
	names, err := userNames(ctx, cmd, "user", reg, s, topic)
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
func userNames(ctx context.Context, cmd *cobra.Command, flag string, reg *registry.Registry, s *settings, topic string) ([]string, error) {
	users, _ := cmd.Flags().GetStringArray(flag)
	if len(users) == 0 {
		return nil, nil
	}
	t, err := reg.Topic(ctx, topic)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, u := range users {
		stored, err := t.UserNames(u, []byte(s.PIIKey))
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
		From: f.time("from"), To: f.time("to"), Fields: query.SplitNames(f.flag("fields")),
	}
	if req.Cursor != "" {
		// A time that moves with the clock was another one for the page before. The
		// cursor knows which.
		req.From, req.To = fixed(req.From, f.flag("from")), fixed(req.To, f.flag("to"))
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
	if f.flag("by") != "" {
		f.fail("by", errors.New("it is for --histogram"))
	}
	return req, f.err
}

// fixed is t, unless it was written relative to the clock.
func fixed(t time.Time, written string) time.Time {
	if written == "now" || strings.HasPrefix(written, "-") {
		return time.Time{}
	}
	return t
}

// notice says what a read will cost before it begins.
func (a *app) notice(text string) { a.note("notice: %s", text) }

func (f *reading) time(name string) time.Time {
	t, err := parseTime(f.flag(name), time.Now())
	f.fail(name, err)
	return t
}

// eventTable shows what people look at first, one line for an event; -o ndjson
// has all of it.
func eventTable(topic *schemas.Topic, events []json.RawMessage) table.Writer {
	if columns := kindColumns(topic); columns != nil {
		return fieldTable(columns, events)
	}
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

// kindColumns are what people look at first in a kind that has fields of its own; nil for
// kind log.
func kindColumns(topic *schemas.Topic) []string {
	spec := topic.Spec()
	if len(spec.Fields) == 0 {
		return nil
	}
	columns := []string{schemas.ColTs, schemas.ColType, schemas.ColUserID}
	for _, f := range spec.Fields {
		columns = append(columns, f.Name)
	}
	return append(columns, schemas.ColAttributes)
}

// fieldTable shows the fields that were asked for, a column each.
func fieldTable(names []string, events []json.RawMessage) table.Writer {
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	t := newTable(names...)
	t.Style().Format.Header = text.FormatDefault
	for _, raw := range events {
		row := make(table.Row, len(names))
		for i, cell := range fieldCells(names, raw) {
			row[i] = cell
		}
		t.AppendRow(row)
	}
	return t
}

// fieldCells are an event's fields by their names, for people.
func fieldCells(names []string, raw json.RawMessage) []string {
	var columns map[string]json.RawMessage
	var attributes map[string]string
	_ = json.Unmarshal(raw, &columns) // our own JSON
	_ = json.Unmarshal(columns[schemas.ColAttributes], &attributes)
	cells := make([]string, len(names))
	for i, name := range names {
		name = strings.TrimSpace(name)
		if v, ok := columns[strings.Trim(name, "`")]; ok && name != schemas.ColAttributes {
			cells[i] = printable(plainText(v))
		} else if name == schemas.ColAttributes {
			cells[i] = printable(pairs(attributes))
		} else {
			cells[i] = printable(attributes[attributeName(name)])
		}
	}
	return cells
}

// attributeName is the attribute that a field names: attributes.x or
// attributes['x'].
func attributeName(field string) string {
	if key, ok := strings.CutPrefix(field, schemas.ColAttributes+"."); ok {
		return key
	}
	return strings.Trim(strings.TrimPrefix(field, schemas.ColAttributes), `[]'"`)
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
	_ = json.Unmarshal(row[schemas.ColAttributes], &attributes) // what is not a map is not shown
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
