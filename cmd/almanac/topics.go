package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

const asYAML = "yaml"

func (a *app) topicsCommand() *cobra.Command {
	ls := &cobra.Command{
		Use:   "ls",
		Short: "List the topics",
		Args:  arguments(0, 0),
		RunE:  a.does(a.topicsList),
	}
	addFlags(ls, switchFlag("removed", "list the topics that were removed, or are being removed, and what was sent to them since"))
	outputFlag(ls, asTable, asJSON, asNDJSON)
	show := &cobra.Command{
		Use:   "show TOPIC",
		Short: "Show a topic as the settings file would declare it",
		Args:  arguments(1, 1),
		RunE:  a.does(a.topicsShow),
	}
	outputFlag(show, asYAML, asJSON)
	return usageGroup(&cobra.Command{
		Use:   "topics",
		Short: "List, show, declare and remove topics",
	}, ls, show, a.topicsApplyCommand(), a.topicsRemoveCommand())
}

func (a *app) topicsApplyCommand() *cobra.Command {
	apply := &cobra.Command{
		Use:   "apply [TOPIC]",
		Short: "Declare a topic, or change one",
		Long: `Declare a topic, or change one: by flags, which leave the rest of a live topic as
it is, or from a file with a list under "topics:". Fields can be added, rotation,
retention changed; lanes and existing fields stay.

A privacy rule (--pii) holds for every event that is sent after this returned,
however long its producer runs: the verb waits until each running router has the
rule, 3 s as a rule. After 10 s it says which has not.

A shorter --keep-days, or one more field to anonymise, makes events go that are
there: it says which and when, and wants --yes. Retention rules whole shards, by
their youngest event, whatever it was when their month began.`,
		Example: `  almanac topics apply auth --field duration_ms:float64 --field endpoint:lowcardinality
  almanac topics apply trail --field event_name:lowcardinality:eventName --field repo:string:repo.name
  almanac topics apply auth --rotate-rows 5000000 --dry-run
  almanac topics apply usage --kind meter
  almanac topics apply auth --keep-days 90 --anonymise-after 30 --anonymise user_id,ip --yes
  almanac topics apply -f almanac.yaml`,
		Annotations: exits{exitPartial: "declared, and a router does not have the privacy rules yet"}.declared(),
		Args:        arguments(0, 1),
		RunE:        a.does(a.topicsApply),
	}
	addFlags(apply, short(textFlag("file", "`FILE` with a list under topics:, - for stdin"), "f"))
	topicFlags(apply)
	flagsOf(apply, &operations.DeclareTopic, "dry_run", "yes")
	outputFlag(apply, asTable, asJSON, asNDJSON)
	return apply
}

func (a *app) topicsList(ctx context.Context, cmd *cobra.Command, _ []string) error {
	if removed, _ := cmd.Flags().GetBool("removed"); removed {
		return whenNATS(ctx, cmd, func(c *session) error { return a.topicsRemoved(ctx, cmd, c) })
	}
	return whenNATS(ctx, cmd, func(c *session) error {
		topics, err := c.reg.Topics(ctx)
		if err != nil {
			return err
		}
		return printRows(a, cmd, topics, func() table.Writer {
			t := newTable("topic", "kind", "lanes", "lane by", "rotate", "kept", "version", "fields")
			numbers(t, "lanes", "version")
			for _, topic := range topics {
				var fields []string
				for _, f := range topic.Fields {
					fields = append(fields, f.Name+":"+string(f.Type))
				}
				t.AppendRow(table.Row{topic.Name, topic.Kind, topic.Lanes, strings.Join(topic.LaneBy, ","), rotation(topic.Rotate), kept(topic), topic.Version, strings.Join(fields, " ")})
			}
			return t
		})
	})
}

func (a *app) topicsShow(ctx context.Context, cmd *cobra.Command, args []string) error {
	o := format(cmd, asYAML)
	return whenNATS(ctx, cmd, func(c *session) error {
		t, err := c.reg.Topic(ctx, args[0])
		if err != nil {
			return err
		}
		shards, err := c.reg.Shards(ctx, t.Name, 0)
		if err != nil {
			return err
		}
		planned := registry.Plan(&t, shards)
		var on []stored
		if err := withStorage(ctx, c, func(db *tables.DB, storage tables.Storage) error {
			places, err := db.Places(ctx, storage, t.Name)
			on = storedOn(places)
			return err
		}); err != nil {
			a.note("where the shards are is not known: %v", err)
		}
		if o == asJSON {
			return a.printJSON(struct {
				schemas.Topic
				Retention outlook  `json:"retention"`
				Stored    []stored `json:"stored,omitempty"`
			}{t, lookout(planned), on})
		}
		lines := retentionLines(&t, planned)
		for _, s := range on {
			lines = append(lines, s.String())
		}
		for _, line := range lines {
			_, _ = fmt.Fprintln(a.stdout, "#", line)
		}
		e := yaml.NewEncoder(a.stdout)
		e.SetIndent(2)
		return e.Encode(map[string][]schemas.Topic{topicsKey: {t}})
	})
}

func (a *app) topicsApply(ctx context.Context, cmd *cobra.Command, args []string) error {
	file, _ := cmd.Flags().GetString("file")
	if (file == "") == (len(args) == 0) {
		return usageError{errors.New("give either a topic or a file (-f)")}
	}
	return whenNATS(ctx, cmd, func(c *session) error { return a.applyTopics(ctx, cmd, c, file, args) })
}

// applyTopics declares the topics of a file, or the one that flags describe.
func (a *app) applyTopics(ctx context.Context, cmd *cobra.Command, c *session, file string, args []string) (err error) {
	dryRun, _ := cmd.Flags().GetBool("dry-run")
	var topics []schemas.Topic
	if file != "" {
		topics, err = a.topicsFile(ctx, file)
	} else {
		topics, err = topicByFlags(ctx, c.reg, cmd, args[0])
	}
	if err != nil {
		return err
	}
	yes, _ := cmd.Flags().GetBool("yes")
	if !dryRun {
		a.tellTarget(c)
	}
	done, err := a.foreseen(ctx, c, topics, dryRun, yes) // all of them before the first is changed
	if err != nil {
		return err
	}
	var late error
	if dryRun {
		a.note("dry run: nothing was changed")
	} else {
		for i, t := range topics {
			if done[i].Now, done[i].Did, err = c.reg.Apply(ctx, t, false); err != nil {
				return err
			}
			a.makeTable(ctx, c, &done[i].Now)
		}
		late = a.awaitRules(ctx, c.reg, done)
	}
	err = printRows(a, cmd, done, func() table.Writer {
		t := newTable("topic", "did", "version", "fields")
		for _, d := range done {
			t.AppendRow(table.Row{d.Topic, d.Did, d.Now.Version, len(d.Now.Fields)})
		}
		return t
	})
	return errors.Join(err, late)
}

// makeTable makes the topic's table now, so that SQL finds it before the first
// event. Where that cannot be done, a sink does it with the first event.
func (a *app) makeTable(ctx context.Context, c *session, t *schemas.Topic) {
	if c.clickhouse == "" {
		return
	}
	db, err := openFixed(c.endpoints)
	if err == nil {
		db.MeantFor(c.reg)
		if err = db.Establish(ctx); err == nil {
			err = db.Ensure(ctx, t)
		}
		if err == nil {
			err = db.EnsureViews(ctx, t)
		}
		_ = db.Close()
	}
	if err != nil {
		a.note("the table of %s, or its views, are not made yet, a sink will: %v", t.Name, err)
	}
}

// topicsFile reads the topics of a file; other keys of a settings file are
// allowed in it.
func (a *app) topicsFile(ctx context.Context, name string) ([]schemas.Topic, error) {
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(io.LimitReader(a.input(ctx), maxStatement))
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	root, err := parseYAML(name, data)
	var topics []schemas.Topic
	if err == nil && root != nil {
		err = eachKey(name, root, "setting", keyNames(), func(key string, v *yaml.Node) (err error) {
			if key == topicsKey {
				topics, err = readTopics(name, v)
			}
			return err
		})
	}
	if err == nil && len(topics) == 0 {
		err = fmt.Errorf("%s declares no topics: it needs a list under the key topics", name)
	}
	if err != nil {
		return nil, configError{err}
	}
	return topics, nil
}
