package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/evaluate"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
)

func (a *app) alertsCommand() *cobra.Command {
	apply := &cobra.Command{
		Use:   "apply",
		Short: "Declare groups of rules of alerts",
		Long: `Declare groups of rules of alerts, from a file. Each group takes the place of the group of its
name; others stay. A rule counts the events of a topic that match a filter within a window, or asks
for an expression over metrics or for the usage of a meter. Prometheus's rule files are taken as they
are, those that record too, with a topic of kind metric by --topic.
The first rules make the topics alerts and alert_calls.`,
		Example: `  almanac alerts apply -f rules.yaml
  almanac alerts apply -f rules.yaml --dry-run
  almanac alerts apply -f prometheus-rules.yaml --topic metrics`,
		Args: arguments(0, 0), RunE: a.does(a.alertsApply),
	}
	rulesFile(apply)
	flagsOf(apply, &operations.SetAlertGroup, "dry_run")
	test := &cobra.Command{
		Use:   "test",
		Short: "Show what rules would have said of what came before",
		Long: `Show which alerts the rules of a file would have made of what was accepted before now, as far as SHARDS has it. Nothing is
declared or recorded, and no receiver is told. What rules would have recorded is shown by its series.`,
		Example: `  almanac alerts test -f rules.yaml --since 1h`,
		Args:    arguments(0, 0), RunE: a.does(a.alertsTest),
	}
	rulesFile(test)
	addFlags(test, orElse(textFlag("since", "`LENGTH` of time ago at which to begin"), "1h"))
	outputFlag(test, asTable, asNDJSON)
	ls := &cobra.Command{
		Use: "ls", Short: "Show the alerts that are pending or firing, and how far each topic is evaluated", Args: arguments(0, 0), RunE: a.does(a.alertsList),
	}
	outputFlag(ls, asTable, asJSON)
	rules := &cobra.Command{Use: "rules", Short: "Show the groups of rules", Args: arguments(0, 0), RunE: a.does(a.alertsRules)}
	outputFlag(rules, asTable, asJSON, asNDJSON)
	rm := &cobra.Command{
		Use: "rm GROUP", Short: "Remove a group of rules; its alerts end", Example: `  almanac alerts rm logins`, Args: arguments(1, 1), RunE: a.does(a.alertsRemove),
	}
	history := &cobra.Command{
		Use:   "history",
		Short: "Show when alerts began and ended, the newest first",
		Long: `Show when alerts began and ended, the newest first: the events of the topic alerts. Times are those of
acceptance.`,
		Example: `  almanac alerts history --from -1d
  almanac alerts history --where 'type = "firing" AND attributes.value = "u-7"'`,
		Args: arguments(0, 0), RunE: a.does(a.alertsHistory),
	}
	flagsOf(history, &operations.AlertHistory, "where", "from", "to", "limit", "cursor")
	outputFlag(history, asTable, asJSON, asNDJSON)
	return usageGroup(&cobra.Command{Use: "alerts", Short: "Rules over what comes, and what they say"}, apply, ls, rules, test, history, rm)
}

// rulesFile is the flag of a file of rules.
func rulesFile(cmd *cobra.Command) {
	f := short(textFlag("file", "`FILE` of rules in YAML; - is stdin"), "f")
	f.Required = true
	addFlags(cmd, f, textFlag("topic", "`TOPIC` of the groups that name none, as those of Prometheus's files"))
}

// readRules reads the file that the flag names.
func (a *app) readRules(ctx context.Context, cmd *cobra.Command) ([]alerts.Group, error) {
	name, _ := cmd.Flags().GetString("file")
	if name == "" {
		return nil, usageError{errors.New("--file: it is required")}
	}
	in := a.input(ctx)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, alerts.MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	topic, _ := cmd.Flags().GetString("topic")
	return alerts.ParseFor(text, topic)
}

func (a *app) alertsApply(ctx context.Context, cmd *cobra.Command, _ []string) error {
	groups, err := a.readRules(ctx, cmd)
	if err != nil {
		return err
	}
	dry, _ := cmd.Flags().GetBool("dry-run")
	return whenServed(ctx, cmd, func(c *session) error {
		m := alerts.New(c.reg, nil)
		if dry {
			if err := m.Check(ctx, groups); err != nil {
				return err
			}
		} else if err := m.Apply(ctx, groups); err != nil {
			return err
		}
		for i := range groups {
			a.note("group %s: %s%s", groups[i].Name, counted(len(groups[i].Rules), "rule"), map[bool]string{true: " would be declared"}[dry])
		}
		return nil
	})
}

func (a *app) alertsTest(ctx context.Context, cmd *cobra.Command, _ []string) error {
	groups, err := a.readRules(ctx, cmd)
	if err != nil {
		return err
	}
	text, _ := cmd.Flags().GetString("since")
	since, ok := parseSpan(text)
	if !ok || since <= 0 {
		return usageError{fmt.Errorf("--since: %q is not a length of time, such as 1h", text)}
	}
	return whenOpen(ctx, cmd, func(c *session, r *query.Reader) error {
		if err := alerts.New(c.reg, r).Check(ctx, groups); err != nil {
			return err
		}
		made, err := evaluate.Try(ctx, evaluate.Config{NATS: c.nc, Registry: c.reg, Reader: r, Hooks: evaluate.Hooks{Fault: func(_ string, err error) { a.note("%v", err) }}}, groups, time.Now().Add(-since))
		if err != nil {
			return err
		}
		if format(cmd, asTable) == asNDJSON { // those of records have other fields
			rows := make([]any, 0, len(made.Alerts)+len(made.Recorded))
			for i := range made.Alerts {
				rows = append(rows, made.Alerts[i])
			}
			for i := range made.Recorded {
				rows = append(rows, made.Recorded[i])
			}
			return printRows(a, cmd, rows, nil)
		}
		for i := range made.Recorded {
			of := &made.Recorded[i]
			a.note("group %s would record %s%v: %s, the last %s at %s", of.Group, of.Record, of.Labels, counted(of.Samples, "sample"), of.Value, of.At.Format(time.RFC3339))
		}
		return printRows(a, cmd, made.Alerts, func() table.Writer { return alertsTable(made.Alerts) })
	})
}

func (a *app) alertsList(ctx context.Context, cmd *cobra.Command, _ []string) error {
	return whenOpen(ctx, cmd, func(c *session, r *query.Reader) error {
		s, err := alerts.New(c.reg, r).List(ctx)
		if err != nil {
			return err
		}
		if format(cmd, asTable) == asJSON {
			return a.printJSON(s)
		}
		for _, t := range s.Topics {
			if t.UpTo.IsZero() {
				a.note("topic %s: %s, not evaluated yet", t.Topic, counted(t.Rules, "rule"))
			} else {
				a.note("topic %s: %s, evaluated up to %s", t.Topic, counted(t.Rules, "rule"), t.UpTo.Format(time.RFC3339))
			}
		}
		for _, r := range s.Recording {
			switch {
			case r.Error != "":
				a.note("group %s, record %s: not evaluated at %s: %s", r.Group, r.Record, r.At.Format(time.RFC3339), r.Error)
			case r.At.IsZero():
				a.note("group %s, record %s: not evaluated yet", r.Group, r.Record)
			default:
				a.note("group %s, record %s: %d series at %s", r.Group, r.Record, r.Series, r.At.Format(time.RFC3339))
			}
		}
		return a.printTable(alertsTable(s.Alerts))
	})
}

func (a *app) alertsRules(ctx context.Context, cmd *cobra.Command, _ []string) error {
	return whenNATS(ctx, cmd, func(c *session) error {
		groups, err := alerts.New(c.reg, nil).Groups(ctx)
		if err != nil {
			return err
		}
		return printRows(a, cmd, groups, func() table.Writer {
			w := newTable("group", "alert", "record", "topic", "rule", "for")
			for i := range groups {
				for j := range groups[i].Rules {
					r := &groups[i].Rules[j]
					w.AppendRow(table.Row{groups[i].Name, r.Alert, r.Record, r.Topic, r.Query(), time.Duration(r.For)})
				}
			}
			return w
		})
	})
}

func (a *app) alertsRemove(ctx context.Context, cmd *cobra.Command, args []string) error {
	return whenNATS(ctx, cmd, func(c *session) error { return alerts.New(c.reg, nil).Remove(ctx, args[0]) })
}

func (a *app) alertsHistory(ctx context.Context, cmd *cobra.Command, _ []string) error {
	f := reading{flags: cmd}
	past := alerts.Past{From: f.time("from"), To: f.until("to"), Where: f.flag("where"), Cursor: f.flag("cursor")}
	past.Limit, _ = cmd.Flags().GetInt("limit")
	if f.err != nil {
		return f.err
	}
	return whenOpen(ctx, cmd, func(c *session, r *query.Reader) error {
		page, err := alerts.New(c.reg, r).History(ctx, past)
		if err != nil {
			return err
		}
		o := format(cmd, a.forEvents())
		page.Cursor = nextPage(cmd, page.Cursor)
		err = printPage(a, o, page, page.Alerts, func() table.Writer { return alertsTable(page.Alerts) })
		if err == nil && page.Cursor != "" && o != asJSON {
			a.note("there may be more: --cursor %s", page.Cursor)
		}
		return err
	})
}

func alertsTable(all []alerts.Alert) table.Writer {
	w := newTable("at", "state", "group", "alert", "value", "count", "since", "reason")
	for i := range all {
		r := &all[i]
		w.AppendRow(table.Row{r.At.UTC().Format(time.RFC3339), r.State, r.Group, r.Rule, r.Value, r.Count, r.Since.UTC().Format(time.RFC3339), r.Reason})
	}
	return w
}
