package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/timers/dispatch"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

func (a *app) timersGroupsCommand() *cobra.Command {
	apply := &cobra.Command{
		Annotations: exits{exitConflict: "the group has another number of slots, which stays"}.declared(),
		Use:         "apply GROUP",
		Short:       "Make a group of timers, or change its settings",
		Long: `Make a group of timers, or change its settings. Its topic is made with the first
group. Slots stay as they are: timers are spread over them by their ids.`,
		Example: `  almanac timers groups apply mails --slots 256
  almanac timers groups apply mails --attempts 6 --initial 30s --multiplier 2 --max-interval 5m
  almanac timers groups apply mails --allow-host hooks.example.com --allow-host '*.example.org' --secret mails`,
		Args: arguments(1, 1),
		RunE: a.does(a.timersGroupsApply),
	}
	addFlags(apply,
		numberFlag("slots", "`NUMBER` of slots, 1 to 4096, of a new group (default 256)"),
		textFlag("timeout", "`TIME` a call may take, at most 30s (default 30s)"),
		namesFlag("allow-host", "`HOST` that may be called, such as hooks.example.com or *.example.org; may be repeated (default: all)"),
		textFlag("secret", "`NAME` in timers_secrets that signs callbacks"),
		numberFlag("max-concurrent", "`NUMBER` of calls at once in a dispatcher (default: no bound of the group's own)"),
		numberFlag("max-pending", "`NUMBER` of timers that are not over; more are refused (default: no bound)"),
		textFlag("max-bytes", "`SIZE` that the group's timers may hold of TIMERS, 0 for the default (default: as much as is free)"),
		numberFlag("max-per-second", "`NUMBER` of calls that begin in a second in a dispatcher (default: no bound)"),
		textFlag("answer", "what is a success: status (any 2xx) or json (200 with {\"ok\":true}) (default status)"),
		switchFlag("keep-detail", "keep the first 200 bytes of answers in the history"),
	)
	retryFlags(apply)
	outputFlag(apply, asTable, asJSON)
	ls := &cobra.Command{Use: "ls", Short: "List the groups", Args: arguments(0, 0), RunE: a.does(a.timersGroupsList)}
	outputFlag(ls, asTable, asJSON, asNDJSON)
	show := &cobra.Command{Use: "show GROUP", Short: "Show a group's settings", Args: arguments(1, 1), RunE: a.does(a.timersGroupsShow)}
	outputFlag(show, asJSON)
	return usageGroup(&cobra.Command{Use: "groups", Short: "Groups of timers and their settings"}, apply, ls, show)
}

// retryFlags are those of a retry policy.
func retryFlags(cmd *cobra.Command) {
	addFlags(cmd,
		numberFlag("attempts", "`NUMBER` of attempts, the first included (default: one)"),
		textFlag("initial", "`TIME` to wait after the first attempt (default 30s)"),
		fractionFlag("multiplier", "`FACTOR` of each further wait, 1 or more (default 2)"),
		textFlag("max-interval", "longest `TIME` to wait (default 5m)"),
		textFlag("max-duration", "`TIME` after the first attempt when no more begins (default: no bound)"),
		numbersFlag("retry-on", "`STATUS` from 400 to 499 that is tried again beside 408, 425 and 429; may be repeated"),
	)
}

// retryPolicy is what the flags say; nil where none is given.
func retryPolicy(f *pflag.FlagSet) (*timer.Policy, error) {
	given := false
	for _, name := range []string{"attempts", "initial", "multiplier", "max-interval", "max-duration", "retry-on"} {
		given = given || f.Changed(name)
	}
	if !given {
		return nil, nil
	}
	p := &timer.Policy{}
	p.Attempts, _ = f.GetInt("attempts")
	p.Multiplier, _ = f.GetFloat64("multiplier")
	p.RetryOn, _ = f.GetIntSlice("retry-on")
	for name, to := range map[string]*time.Duration{"initial": &p.Initial, "max-interval": &p.MaxInterval, "max-duration": &p.MaxDuration} {
		text, _ := f.GetString(name)
		if text == "" {
			continue
		}
		d, ok := parseSpan(text)
		if !ok || d <= 0 {
			return nil, usageError{fmt.Errorf("--%s: %q is not a length of time, such as 30s", name, text)}
		}
		*to = d
	}
	if f.Changed("multiplier") && p.Multiplier == 0 {
		return nil, usageError{errors.New("--multiplier: 0 is not a factor of at least 1")}
	}
	return p, p.Validate()
}

func (a *app) timersGroupsApply(ctx context.Context, cmd *cobra.Command, args []string) error {
	f := cmd.Flags()
	policy, err := retryPolicy(f)
	if err != nil {
		return err
	}
	if n, _ := f.GetInt("slots"); f.Changed("slots") && n == 0 { // of a group it would mean the default
		return usageError{fmt.Errorf("--slots: %w", schemas.ValidateTimerSlots(n))}
	}
	var timeout time.Duration
	if text, _ := f.GetString("timeout"); f.Changed("timeout") {
		if timeout, err = timer.ParseTimeout(text); err != nil {
			return err
		}
	}
	maxBytes := int64(0)
	if text, _ := f.GetString("max-bytes"); f.Changed("max-bytes") && text != "0" {
		var ok bool
		if maxBytes, ok = parseSize(text); !ok {
			return usageError{fmt.Errorf("--max-bytes: %q is not a size, such as 64MiB", text)}
		}
	}
	return a.amendGroup(ctx, cmd, args[0], func(*session) error { return nil }, func(g *timer.Group) error {
		if f.Changed("max-bytes") {
			g.MaxBytes = maxBytes
		}
		given(f, "slots", f.GetInt, &g.Slots)
		if policy != nil {
			g.Retry = policy
		}
		if f.Changed("timeout") {
			g.Timeout = timeout
		}
		given(f, "allow-host", f.GetStringSlice, &g.AllowHosts)
		given(f, "secret", f.GetString, &g.SecretRef)
		given(f, "max-concurrent", f.GetInt, &g.MaxConcurrent)
		given(f, "max-per-second", f.GetInt, &g.MaxPerSecond)
		given(f, "max-pending", f.GetInt, &g.MaxPending)
		given(f, "answer", f.GetString, &g.Answer)
		given(f, "keep-detail", f.GetBool, &g.KeepDetail)
		return nil
	})
}

func (a *app) timersPauseCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, c := range []struct {
		use, short string
		paused     bool
	}{
		{"pause GROUP", "Call nothing of a group until it is resumed", true},
		{"resume GROUP", "Call a group's timers again, what fell due meanwhile at once", false},
	} {
		cmd := &cobra.Command{Use: c.use, Short: c.short, Args: arguments(1, 1), RunE: a.does(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			wait := func(*session) error { return nil }
			if c.paused {
				wait = func(c *session) error { return a.awaitPaused(ctx, c, args[0]) }
			}
			return a.amendGroup(ctx, cmd, args[0], wait, func(g *timer.Group) error {
				if g.Slots == 0 {
					return &timer.Refusal{Code: timer.CodeUnknownGroup, Text: fmt.Sprintf("there is no group %q", args[0])}
				}
				g.Paused = c.paused
				return nil
			})
		})}
		if c.paused {
			cmd.Annotations = exits{exitPartial: "paused, and a dispatcher that has not seen it may call"}.declared()
		}
		outputFlag(cmd, asTable, asJSON)
		out = append(out, cmd)
	}
	return out
}

func (a *app) amendGroup(ctx context.Context, cmd *cobra.Command, name string, wait func(*session) error, f func(*timer.Group) error) error {
	return whenNATS(ctx, cmd, func(c *session) error {
		topic, _ := cmd.Flags().GetString("topic")
		g, did, err := timers.ApplyGroup(ctx, c.reg, topic, name, f)
		if err != nil {
			return err
		}
		a.note("group %s of topic %s: %s", g.Name, g.Topic, did)
		if err := wait(c); err != nil {
			return err
		}
		if printed, err := printRecord(a, format(cmd, asTable), g); printed || err != nil {
			return err
		}
		return a.printTable(groupsTable([]timer.Group{g}))
	})
}

// pausedWithin is how long dispatchers have to see that a group is paused.
const pausedWithin = 10 * time.Second

// awaitPaused waits until no dispatcher begins a call of a group that was paused, and names those that may.
func (a *app) awaitPaused(ctx context.Context, c *session, group string) error {
	rev, err := c.reg.Revision(ctx)
	if err != nil {
		return err
	}
	behind, err := c.reg.AwaitSeen(ctx, dispatch.Role, rev, pausedWithin)
	if err != nil {
		return err
	}
	for _, m := range behind {
		a.note("%s has not seen yet that %s is paused, and may call its timers", m, group)
	}
	if len(behind) > 0 {
		return errPartial
	}
	return nil
}

func (a *app) timersGroupsList(ctx context.Context, cmd *cobra.Command, _ []string) error {
	return whenNATS(ctx, cmd, func(c *session) error {
		topic, _ := cmd.Flags().GetString("topic")
		gs, err := c.reg.TimerGroups(ctx, topic)
		if err != nil {
			return err
		}
		return printRows(a, cmd, gs, func() table.Writer { return groupsTable(gs) })
	})
}

func (a *app) timersGroupsShow(ctx context.Context, cmd *cobra.Command, args []string) error {
	return whenNATS(ctx, cmd, func(c *session) error {
		topic, _ := cmd.Flags().GetString("topic")
		g, err := c.reg.TimerGroup(ctx, topic, args[0])
		if errors.Is(err, registry.ErrNotFound) {
			return usageError{fmt.Errorf("topic %s has no group %q; `almanac timers groups ls` lists them, `almanac timers groups apply %[2]s` makes one", topic, args[0])}
		}
		if err != nil {
			return err
		}
		return a.printJSON(g)
	})
}

func groupsTable(gs []timer.Group) table.Writer {
	w := newTable("group", "slots", "state", "attempts", "timeout", "answer", "hosts", "secret")
	for _, g := range gs {
		state, attempts, answer, hosts := "running", 1, timer.AnswerStatus, "all"
		if g.Paused {
			state = "paused"
		}
		if g.Retry != nil {
			attempts = g.Retry.Attempts
		}
		if g.Answer != "" {
			answer = g.Answer
		}
		if len(g.AllowHosts) > 0 {
			hosts = strings.Join(g.AllowHosts, " ")
		}
		w.AppendRow(table.Row{g.Name, g.Slots, state, attempts, g.TimeoutOf(&timer.Spec{}), answer, hosts, g.SecretRef})
	}
	return w
}
