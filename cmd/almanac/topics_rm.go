package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/maintenance/removal"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) topicsRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rm TOPIC",
		Short: "Remove a topic with all that is of it",
		Long: `Remove a topic with all that is of it: its events, documents or timers in the streams,
its tables, views and what is derived from them, its shards, erasures, seals and dead
letters in the registry. It cannot be undone. Afterwards nothing is left, which is
looked for, and the name can be used again.

It wants the topic's name typed, at the terminal or with --confirm TOPIC. Programs that
send to the topic are to be stopped first: what they send later is not kept, only
counted, and --dry-run shows it.

When this is killed, run it again: it goes on. Until it has ended, the topic is not there and
cannot be declared. What was copied into other topics, such as bills, stays.`,
		Example: `  almanac topics rm trial --dry-run
  almanac topics rm trial --confirm trial`,
		Args: arguments(1, 1),
		RunE: a.does(a.topicsRemove),
	}
	addFlags(cmd,
		switchFlag("dry-run", "say what would go, and do nothing"),
		textFlag("confirm", "the name of the `TOPIC` again, instead of typing it"),
	)
	outputFlag(cmd, asTable, asJSON)
	return cmd
}

func (a *app) topicsRemove(ctx context.Context, cmd *cobra.Command, args []string) error {
	topic := args[0]
	dry, _ := cmd.Flags().GetBool("dry-run")
	confirmed, _ := cmd.Flags().GetString("confirm")
	if cmd.Flags().Changed("confirm") && confirmed != topic {
		return usageError{fmt.Errorf("--confirm says %q, and the topic is %q; nothing was removed", confirmed, topic)}
	}
	return whenServed(ctx, cmd, func(c *session) error {
		cfg := removal.Config{Registry: c.reg, DB: c.db, Step: func(what string) { a.note("%s: %s", topic, what) }}
		plan, err := removal.Propose(ctx, cfg, topic)
		if err != nil {
			return err
		}
		if dry {
			a.note("dry run: nothing was removed")
			return a.printRemoval(cmd, plan)
		}
		if plan.Began.IsZero() { // one that is under way goes on
			if err := unwatched(ctx, c.reg, topic); err != nil {
				return err
			}
		}
		a.tellTarget(c)
		a.note("%s goes: %s; %d erasures and %d seals with their proofs", topic, plan.Left.String(), plan.Erasures, plan.Seals)
		if len(plan.Producers) > 0 {
			a.note("programs sent to it in the last minutes: producers %s; what they send from now on is not kept", strings.Join(plan.Producers, ", "))
		}
		if confirmed == "" {
			if err := a.typed(ctx, topic); err != nil {
				return err
			}
		}
		d, err := removal.Run(ctx, cfg, topic)
		if ctx.Err() != nil {
			a.note("interrupted; run it again, and it goes on")
			return errInterrupted
		}
		if err != nil {
			return err
		}
		a.note("%s is removed: nothing of it is left, and its name can be used again", topic)
		if format(cmd, asTable) == asJSON {
			return a.printJSON(d)
		}
		return nil
	})
}

// typed wants the name of a topic typed at the terminal.
func (a *app) typed(ctx context.Context, topic string) error {
	in, ok := a.stdin.(*os.File)
	if !ok || !terminal(in) {
		return usageError{fmt.Errorf("nothing was removed: see with --dry-run what would go, then say --confirm %s", topic)}
	}
	_, _ = fmt.Fprintf(a.stderr, "Type the name of the topic to remove it: ")
	line, err := bufio.NewReader(a.input(ctx)).ReadString('\n')
	if err != nil {
		_, _ = fmt.Fprintln(a.stderr) // the prompt's line is not ended yet
	}
	switch name := strings.TrimSpace(line); {
	case errors.Is(err, errInterrupted):
		a.note("nothing was removed")
		return err
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("nothing was removed: the terminal: %w", err)
	case name == "":
		return usageError{fmt.Errorf("nothing was typed, and the topic is %q; nothing was removed", topic)}
	case name != topic:
		return usageError{fmt.Errorf("%q was typed, and the topic is %q; nothing was removed", name, topic)}
	}
	return nil
}

func (a *app) printRemoval(cmd *cobra.Command, p *removal.Plan) error {
	if printed, err := printRecord(a, format(cmd, asTable), p); printed || err != nil {
		return err
	}
	w := newTable("topic", "kind", "events", "docs", "timers", "shards", "tables", "rows", "entries", "erasures", "seals", "producers")
	numbers(w, "events", "docs", "timers", "shards", "tables", "rows", "entries", "erasures", "seals")
	m := p.Messages
	w.AppendRow(table.Row{
		p.Topic, p.Kind, m[schemas.StreamEvents], m[schemas.StreamDocs], m[schemas.StreamTimers], m[schemas.StreamShards], len(p.Tables), p.Rows, p.Entries,
		p.Erasures, p.Seals, strings.Join(p.Producers, " "),
	})
	return a.printTable(w)
}

// topicsRemoved lists the removals.
func (a *app) topicsRemoved(ctx context.Context, cmd *cobra.Command, c *session) error {
	all, err := c.reg.Removals(ctx)
	if err != nil {
		return err
	}
	rows := make([]registry.Removal, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		rows = append(rows, all[name])
	}
	return printRows(a, cmd, rows, func() table.Writer {
		w := newTable("topic", "kind", "began", "ended", "rows", "late messages", "late events", "last", "from producers")
		numbers(w, "rows", "late messages", "late events")
		for i := range rows {
			d, ended, last := &rows[i], "", ""
			if d.Ended != nil {
				ended = clockTime(*d.Ended)
			}
			if d.Late.Messages > 0 {
				last = clockTime(d.Late.Last)
			}
			w.AppendRow(table.Row{d.Topic.Name, d.Topic.Kind, clockTime(d.Began), ended, d.Took["rows"], d.Late.Messages, d.Late.Events, last, strings.Join(d.Late.Producers, " ")})
		}
		return w
	})
}

// unwatched refuses to remove a topic that rules of alerts watch: they would fall silent, which is what they are there to notice.
func unwatched(ctx context.Context, reg *registry.Registry, topic string) error {
	groups, err := alerts.Stored(ctx, reg)
	if err != nil {
		return err
	}
	own := topic == schemas.TopicAlerts || topic == schemas.TopicAlertCalls // of every rule
	var by []string
	for i := range groups {
		if slices.ContainsFunc(groups[i].Rules, func(r alerts.Rule) bool { return r.Topic == topic || own }) {
			by = append(by, groups[i].Name)
		}
	}
	if len(by) == 0 {
		ending, err := alerts.Ending(ctx, reg, topic)
		if err == nil && ending {
			err = fmt.Errorf("rules of alerts watched topic %q, and nothing was removed: its alerts are being ended; again in some seconds", topic)
		}
		return err
	}
	return fmt.Errorf("rules of alerts watch or need topic %q, and nothing was removed: take them out of the groups %s (`almanac alerts apply`), or remove these (`almanac alerts rm %s`)", topic, strings.Join(by, ", "), by[0])
}
