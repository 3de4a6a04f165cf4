package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/trail"
)

func (a *app) trailCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trail TOPIC",
		Short: "Show who changed what, and what is still open",
		Long: `Show what a topic of kind audit recorded within one or more scopes, the newest first: each
change once, with how it ended, and the activity of requests. Besides --scope one of these must
be given: --request, --resource, --actor, --service with --resource-type, or --open.

--open shows the changes that were announced and neither committed nor rolled back.
--history shows every event of each entry. An event is found as soon as it was accepted.

With -o json it is one page: a document with entries and the cursor of the next page.`,
		Example: `  almanac trail trail --scope projects/p --request req-7
  almanac trail trail --scope projects/p --resource roles/x --history
  almanac trail trail --scope projects/p --actor u-7 --from -1d
  almanac trail trail --scope projects/p --service iam --resource-type role -o ndjson
  almanac trail trail --scope projects/p --open`,
		Args: arguments(1, 1),
		RunE: a.does(a.trail),
	}
	flagsOf(cmd, &operations.Trail, "scope", "request", "resource", "service", "resource_type", "method", "where", "from", "to", "open", "open_after", "history", "limit", "cursor")
	actor := flagOf(&operations.Trail, "actor")
	actor.Help = "`USER` who acted, by the user's own name also where the topic hashes it; may be given several times"
	addFlags(cmd, actor)
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	return cmd
}

func (a *app) trail(ctx context.Context, cmd *cobra.Command, args []string) error {
	o := format(cmd, a.forEvents())
	req, err := trailRequest(cmd, args[0])
	if err != nil {
		return err
	}
	return whenOpen(ctx, cmd, func(c *session, r *query.Reader) error {
		if req.Actors, err = userNames(ctx, cmd, "actor", c, req.Topic); err != nil {
			return err
		}
		page, err := a.trailPage(ctx, trail.New(r), req, o != asJSON)
		if err != nil {
			return err
		}
		page.Cursor = nextPage(cmd, page.Cursor)
		err = printPage(a, o, page, page.Entries, func() table.Writer { return trailTable(page.Entries, req.History) })
		if err == nil && page.Cursor != "" && o != asJSON {
			a.note("there may be more: --cursor %s", page.Cursor)
		}
		return err
	})
}

// trailPage reads a page. A short one that has a cursor goes on where fill says so.
func (a *app) trailPage(ctx context.Context, r *trail.Reader, req trail.Request, fill bool) (*trail.Page, error) {
	page, err := r.Page(ctx, req)
	for err == nil && fill && page.Cursor != "" && len(page.Entries) < req.Limit {
		req.Cursor, req.Limit = page.Cursor, req.Limit-len(page.Entries)
		var next *trail.Page
		if next, err = r.Page(ctx, req); err == nil {
			next.Entries = append(page.Entries, next.Entries...)
			req.Limit += len(page.Entries)
			page = next
		}
	}
	return page, err
}

func trailRequest(cmd *cobra.Command, topic string) (trail.Request, error) {
	f := reading{flags: cmd}
	flags := cmd.Flags()
	req := trail.Request{
		Topic: topic, RequestID: f.flag("request"), Resource: f.flag("resource"), Service: f.flag("service"),
		ResourceType: f.flag("resource-type"), Method: f.flag("method"), Where: f.flag("where"),
		From: f.time("from"), To: f.until("to"), Cursor: f.flag("cursor"),
	}
	req.Scopes, _ = flags.GetStringArray("scope")
	req.Open, _ = flags.GetBool("open")
	req.History, _ = flags.GetBool("history")
	req.Limit, _ = flags.GetInt("limit")
	if len(req.Scopes) == 0 {
		f.fail("scope", errors.New("it is required"))
	}
	if req.Limit < 1 || req.Limit > trail.MaxLimit {
		f.fail("limit", fmt.Errorf("%d is not 1 to %d", req.Limit, trail.MaxLimit))
	}
	after, ok := parseSpan(f.flag("open-after"))
	if !ok || after == 0 {
		f.fail("open-after", fmt.Errorf("%q is not a length of time, such as 10m", f.flag("open-after")))
	}
	if flags.Changed("open-after") && !req.Open {
		f.fail("open-after", errors.New("it is for --open"))
	}
	req.OpenAfter = after
	return req, f.err
}

// trailTable shows entries, or the events of each.
func trailTable(entries []trail.Entry, history bool) table.Writer {
	t := newTable("time", "request", "actor", "service", "method", "resource", "event", "state", "took")
	for i := range entries {
		e := &entries[i]
		if history {
			for k := range e.History {
				h := &e.History[k]
				t.AppendRow(trailRow(h.Time, h.RequestID, h.Actor, h.Service, h.Method, h.Resource, h.Type, h.State, ""))
			}
			continue
		}
		state, took := e.State, ""
		if e.Disputed {
			state += " (disputed)"
		}
		if e.Ended != nil && e.Events > 1 {
			took = e.Ended.Sub(e.Began).String()
		}
		t.AppendRow(trailRow(e.Began, e.RequestID, e.Actor, e.Service, e.Method, e.Resource, e.Type, state, took))
	}
	return t
}

func trailRow(at time.Time, cells ...string) table.Row {
	row := table.Row{at.Format(time.RFC3339Nano)}
	for _, c := range cells {
		row = append(row, printable(c))
	}
	return row
}
