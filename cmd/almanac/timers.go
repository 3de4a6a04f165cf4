package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/operations"
	querytimers "github.com/almanac-events/almanac/internal/query/timers"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

func (a *app) timersCommand() *cobra.Command {
	create := &cobra.Command{
		Annotations: otherTimer.declared(),
		Use:         "create GROUP ID",
		Short:       "Schedule a callback",
		Long: `Schedule a callback: at the due time the URL gets a POST with the timer's id and
payload. Creating the same timer again is fine; another content under the id is
refused unless --replace is passed.`,
		Example: `  almanac timers create mails welcome-17 --due +2s --url https://hooks.example.com/welcome --payload '{"user":17}'
  almanac timers create mails welcome-17 --due 2026-12-24T18:00:00Z --url https://hooks.example.com/welcome --replace`,
		Args: arguments(2, 2),
		RunE: a.does(a.timersCreate),
	}
	timerFlags(create)
	addFlags(create,
		switchFlag("replace", "replace a timer of the id that has another content"),
		textFlag("user", "`USER` whom the timer is about, for erasure"),
	)
	outputFlag(create, asTable, asJSON)
	update := &cobra.Command{
		Annotations: otherTimer.declared(),
		Use:         "update GROUP ID",
		Short:       "Change a pending timer",
		Example:     `  almanac timers update mails welcome-17 --due +1h --if-revision 1`,
		Args:        arguments(2, 2),
		RunE:        a.does(a.timersUpdate),
	}
	timerFlags(update)
	addFlags(update, signedFlag("if-revision", "only if it has this `REVISION` (default: any)"))
	outputFlag(update, asTable, asJSON)
	rm := &cobra.Command{
		Annotations: exits{exitPartial: "some of --exported were not cancelled; each is named", exitConflict: otherTimer[exitConflict]}.declared(),
		Use:         "rm GROUP [ID]", Short: "Cancel a timer, or those that were exported", Args: arguments(1, 2), RunE: a.does(a.timersRemove),
		Example: `  almanac timers rm mails welcome-17
  almanac timers rm mails --exported < mails.ndjson`,
	}
	addFlags(rm,
		switchFlag("exported", "cancel the timers that stdin has as lines of `timers export`, unless they changed since"),
		signedFlag("if-revision", "only if it has this `REVISION` (default: any)"),
	)
	ls := &cobra.Command{Use: "ls GROUP", Short: "List timers of a group", Args: arguments(1, 1), RunE: a.does(a.timersList)}
	flagsOf(ls, &operations.Timers, "state", "due_before", "slot", "limit", "cursor")
	outputFlag(ls, asTable, asJSON, asNDJSON)
	verbs := []*cobra.Command{create, update, rm, ls}
	for use, v := range map[string]struct {
		short string
		do    verb
		exits exits
	}{
		"get GROUP ID":   {"Show a timer", a.timersGet, nil},
		"fire GROUP ID":  {"Make a pending timer due now", a.timersFire, otherTimer},
		"retry GROUP ID": {"Make a failed timer pending again, due now", a.timersRetry, otherTimer},
	} {
		c := &cobra.Command{Use: use, Short: v.short, Args: arguments(2, 2), RunE: a.does(v.do), Annotations: v.exits.declared()}
		outputFlag(c, asTable, asJSON)
		verbs = append(verbs, c)
	}
	history := &cobra.Command{Use: "history GROUP ID", Short: "Show every transition of a timer", Args: arguments(2, 2), RunE: a.does(a.timersHistory)}
	outputFlag(history, asTable, asJSON, asNDJSON)
	verbs = append(verbs, history, a.timersImportCommand(), a.timersExportCommand(), a.timersStatusCommand(), a.timersGroupsCommand(), a.timersRunCommand())
	verbs = append(verbs, a.timersPauseCommands()...)
	c := usageGroup(&cobra.Command{
		Use:   "timers",
		Short: "Callbacks at a time: create, change, cancel and follow timers",
	}, verbs...)
	addFlagsTo(c, c.PersistentFlags(), flagOf(&operations.Timers, "topic"))
	return c
}

// timerFlags are what a create and an update have in common.
func timerFlags(c *cobra.Command) {
	addFlags(c,
		textFlag("due", "`TIME` of the call: +2s from now, or RFC 3339"),
		textFlag("url", "`URL` that is called"),
		textFlag("payload", "`JSON` that is sent"),
		switchFlag("bare", "send the payload alone as the body, for a URL that takes no other"),
		textFlag("timeout", "`TIME` a call may take, at most 30s (default: the group's, which is 30s unless it says otherwise)"),
		textFlag("max-lateness", "`TIME` after which it is too late to call"),
	)
	retryFlags(c)
}

// whenTimers opens the timers of --topic, with the archive where a verb reads what is over,
// and closes them after f.
func whenTimers(ctx context.Context, cmd *cobra.Command, archive bool, f func(*session, *timers.Timers) error) error {
	connect := openNATS
	if archive {
		connect = openServers
	}
	return whenConnected(ctx, cmd, connect, func(c *session) error {
		var cfg timers.Config
		if archive {
			cfg.Archive = &querytimers.Archive{DB: c.db}
			c.reg = c.reg.WithThird(c.db)
		}
		topic, _ := cmd.Flags().GetString("topic")
		t, err := timers.Open(ctx, c.nc, c.reg, topic, cfg)
		if errors.Is(err, schemas.ErrUnknownTopic) && topic == schemas.DefaultTimerTopic {
			return usageError{errors.New("there is no group of timers yet; make one with `almanac timers groups apply GROUP`")}
		}
		if err != nil {
			return err
		}
		return f(c, t)
	})
}

func (a *app) timersCreate(ctx context.Context, cmd *cobra.Command, args []string) error {
	change, err := timerChange(cmd)
	if err != nil {
		return err
	}
	n := timers.Draft{Group: args[0], ID: args[1]}
	text := func(name string) string { v, _ := cmd.Flags().GetString(name); return v }
	if n.Due, err = dueFlag(cmd, "due", time.Now()); err != nil {
		return err
	}
	n.URL, n.User = text("url"), text("user")
	n.After = timer.AfterOf(text("due"))
	n.Replace, _ = cmd.Flags().GetBool("replace")
	return whenTimers(ctx, cmd, false, func(_ *session, t *timers.Timers) error {
		now, err := t.Now(ctx)
		if err == nil {
			n.Due, err = dueFlag(cmd, "due", now)
		}
		if err != nil {
			return err
		}
		n.Take(change)
		tm, created, err := t.Create(ctx, n)
		if err != nil {
			return err
		}
		if !created {
			a.note("timer %s of group %s exists, revision %d", tm.ID, tm.Group, tm.Revision)
		}
		return a.printTimer(cmd, tm)
	})
}

// dueFlag reads a flag that is a time to come, from now where it is relative. Before there is a connection
// it is read by the machine's clock, to refuse what is not a time; what counts is the server's.
func dueFlag(cmd *cobra.Command, name string, now time.Time) (time.Time, error) {
	text, _ := cmd.Flags().GetString(name)
	due, err := timer.ParseDue(text, now)
	if err != nil {
		err = usageError{fmt.Errorf("--%s: %w", name, err)}
	}
	return due, err
}

// timerChange reads the flags that are given.
func timerChange(cmd *cobra.Command) (c timers.Change, err error) {
	f := cmd.Flags()
	text := func(name string) string { v, _ := f.GetString(name); return v }
	if f.Changed("due") {
		due, err := dueFlag(cmd, "due", time.Now())
		if err != nil {
			return c, err
		}
		c.Due = &due
	}
	if f.Changed("url") {
		u := text("url")
		c.URL = &u
	}
	if f.Changed("payload") {
		p := json.RawMessage(text("payload"))
		c.Payload = &p
	}
	if f.Changed("bare") {
		bare, _ := f.GetBool("bare")
		c.Bare = &bare
	}
	if f.Changed("timeout") {
		d, err := timer.ParseTimeout(text("timeout"))
		if err != nil {
			return c, err
		}
		c.Timeout = &d
	}
	if f.Changed("max-lateness") {
		d, ok := parseSpan(text("max-lateness"))
		if !ok {
			return c, usageError{fmt.Errorf("--max-lateness: %q is not a length of time, such as 5m", text("max-lateness"))}
		}
		c.MaxLateness = &d
	}
	c.Retry, err = retryPolicy(f)
	return c, err
}

func (a *app) timersUpdate(ctx context.Context, cmd *cobra.Command, args []string) error {
	change, err := timerChange(cmd)
	if err != nil {
		return err
	}
	revision, _ := cmd.Flags().GetInt64("if-revision")
	return a.onTimer(ctx, cmd, false, func(ctx context.Context, t *timers.Timers) (timers.Timer, error) {
		if change.Due != nil {
			now, err := t.Now(ctx)
			if err == nil {
				*change.Due, err = dueFlag(cmd, "due", now)
			}
			if err != nil {
				return timers.Timer{}, err
			}
		}
		return t.Update(ctx, args[0], args[1], timers.IfRevision(revision), change)
	})
}

func (a *app) timersFire(ctx context.Context, cmd *cobra.Command, args []string) error {
	return a.onTimer(ctx, cmd, false, func(ctx context.Context, t *timers.Timers) (timers.Timer, error) {
		return t.FireNow(ctx, args[0], args[1])
	})
}

func (a *app) timersRetry(ctx context.Context, cmd *cobra.Command, args []string) error {
	return a.onTimer(ctx, cmd, true, func(ctx context.Context, t *timers.Timers) (timers.Timer, error) {
		return t.Retry(ctx, args[0], args[1])
	})
}

func (a *app) onTimer(ctx context.Context, cmd *cobra.Command, archive bool, f func(context.Context, *timers.Timers) (timers.Timer, error)) error {
	return whenTimers(ctx, cmd, archive, func(_ *session, t *timers.Timers) error {
		tm, err := f(ctx, t)
		if err != nil {
			return err
		}
		return a.printTimer(cmd, tm)
	})
}

func (a *app) timersGet(ctx context.Context, cmd *cobra.Command, args []string) error {
	return a.onTimer(ctx, cmd, true, func(ctx context.Context, t *timers.Timers) (timers.Timer, error) {
		return t.Get(ctx, args[0], args[1])
	})
}

func (a *app) timersRemove(ctx context.Context, cmd *cobra.Command, args []string) error {
	if exported, _ := cmd.Flags().GetBool("exported"); exported != (len(args) == 1) {
		return usageError{errors.New("give either the id of a timer or --exported")}
	} else if exported {
		return a.timersRemoveExported(ctx, cmd, args[0])
	}
	return whenTimers(ctx, cmd, false, func(c *session, t *timers.Timers) error {
		a.tellTarget(c)
		revision, _ := cmd.Flags().GetInt64("if-revision")
		inFlight, err := t.Delete(ctx, args[0], args[1], timers.IfRevision(revision))
		if err != nil {
			return err
		}
		if inFlight {
			a.note("timer %s is being called at this moment; it gets no more attempts", args[1])
		}
		return nil
	})
}

func (a *app) timersList(ctx context.Context, cmd *cobra.Command, args []string) error {
	f := timers.Filter{}
	state, _ := cmd.Flags().GetString("state")
	f.State = timer.State(state)
	if slot, _ := cmd.Flags().GetInt("slot"); cmd.Flags().Changed("slot") {
		f.Slot = &slot
	}
	f.Limit, _ = cmd.Flags().GetInt("limit")
	f.Cursor, _ = cmd.Flags().GetString("cursor")
	if text, _ := cmd.Flags().GetString("due-before"); text != "" {
		var err error
		if f.DueBefore, err = dueFlag(cmd, "due-before", timesOf(cmd)); err != nil {
			return err
		}
	}
	return whenTimers(ctx, cmd, false, func(_ *session, t *timers.Timers) error {
		p, err := t.List(ctx, args[0], f)
		if err != nil {
			return err
		}
		if p.Cursor = nextPage(cmd, p.Cursor); p.Cursor != "" {
			a.note("there are more: --cursor %s", p.Cursor)
		}
		return printRows(a, cmd, p.Timers, func() table.Writer { return timersTable(p.Timers) })
	})
}

func (a *app) timersHistory(ctx context.Context, cmd *cobra.Command, args []string) error {
	return whenTimers(ctx, cmd, true, func(_ *session, t *timers.Timers) error {
		rows, err := t.History(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		return printRows(a, cmd, rows, func() table.Writer {
			w := newTable("at", "what", "revision", "attempt", "due", "status", "error", "late ms", "took ms")
			for _, r := range rows {
				w.AppendRow(table.Row{clockTime(r.UpdatedAt), r.Op, r.Revision, r.Attempt, clockTime(r.Due), r.Status, r.Error, r.LateMs, r.TookMs})
			}
			return w
		})
	})
}

func (a *app) printTimer(cmd *cobra.Command, tm timers.Timer) error {
	o := format(cmd, asTable)
	if o == asJSON {
		return a.printJSON(tm)
	}
	return a.printTable(timersTable([]timers.Timer{tm}))
}

func timersTable(rows []timers.Timer) table.Writer {
	w := newTable("group", "id", "slot", "state", "due", "executed", "revision", "attempt", "status", "error")
	for _, r := range rows {
		executed := ""
		if r.ExecutedAt != nil {
			executed = clockTime(*r.ExecutedAt)
		}
		w.AppendRow(table.Row{r.Group, r.ID, r.Slot, r.State, clockTime(r.Due), executed, r.Revision, r.Attempt, r.Status, r.Error})
	}
	return w
}

func clockTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
