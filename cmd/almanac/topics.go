package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/tables"
)

const asYAML = "yaml"

func (a *app) topicsCommand() *cobra.Command {
	ls := &cobra.Command{
		Use:   "ls",
		Short: "List the topics",
		Args:  arguments(0, 0),
		RunE:  a.does(a.topicsList),
	}
	outputFlag(ls, asTable, asJSON, asNDJSON)
	show := &cobra.Command{
		Use:   "show TOPIC",
		Short: "Show a topic as the settings file would declare it",
		Args:  arguments(1, 1),
		RunE:  a.does(a.topicsShow),
	}
	outputFlag(show, asYAML, asJSON)
	return family(&cobra.Command{
		Use:   "topics",
		Short: "List, show and declare topics",
	}, ls, show, a.topicsApplyCommand())
}

func (a *app) topicsApplyCommand() *cobra.Command {
	apply := &cobra.Command{
		Use:   "apply [TOPIC]",
		Short: "Declare a topic, or change one",
		Long: `Declare a topic, or change one: by flags, which leave the rest of a live topic as
it is, or from a file with a list under "topics:". Fields can be added, rotation,
retention changed; lanes and existing fields stay.

A shorter --keep-days, or one more field to anonymise, makes events go that are
there: it says which and when, and wants --yes. Retention rules whole shards, by
their youngest event, whatever it was when their month began.`,
		Example: `  almanac topics apply auth --field duration_ms:float64 --field endpoint:lowcardinality
  almanac topics apply trail --field event_name:lowcardinality:eventName --field repo:string:repo.name
  almanac topics apply auth --rotate-rows 5000000 --dry-run
  almanac topics apply usage --kind meter
  almanac topics apply auth --keep-days 90 --anonymise-after 30 --anonymise user_id,ip --yes
  almanac topics apply -f almanac.yaml`,
		Args: arguments(0, 1),
		RunE: a.does(a.topicsApply),
	}
	f := apply.Flags()
	f.StringP("file", "f", "", "`FILE` with a list under topics:, - for stdin")
	f.String("kind", "", fmt.Sprintf("`KIND` of a new topic, which cannot be changed later: one of %v (default %s)", kinds.All(), kinds.Log))
	f.StringArray("field", nil, fmt.Sprintf("add a promoted field `NAME:TYPE`, or NAME:TYPE:FROM with the dotted path that events bring it by; types: %v", schemas.FieldTypes))
	f.Int("lanes", schemas.DefaultLanes, "slices of each month; cannot be changed later")
	f.StringSlice("lane-by", []string{schemas.ColUserID}, "`FIELDS` that decide the lane; cannot be changed later")
	f.Uint64("rotate-rows", schemas.DefaultRotateRows, "rows that fill a shard (0: never)")
	f.String("rotate-bytes", "2GiB", "`SIZE` that fills a shard (0: never)")
	f.String("rotate-span", "0s", "`LENGTH` of time that fills a shard (0s: never)")
	f.String("sql-fresh", schemas.DefaultSQLFresh.String(), "`LENGTH` of time an accepted event may take until SQL has it (1s to 1h); queries have it at once")
	f.Int("keep-days", schemas.DefaultKeepDays, "days to keep events (0: forever)")
	f.Int("anonymise-after", 0, "days after which the fields of --anonymise are cleared (0: never)")
	f.StringSlice("anonymise", nil, "`FIELDS` to clear in older events: columns, promoted fields, attributes.NAME")
	f.StringArray("pii", nil, fmt.Sprintf("set the privacy rule of a field, `FIELD:RULE` (FIELD: alone takes it back); rules: %v", schemas.PrivacyRules))
	f.StringSlice("once-by", nil, "`COLUMNS` that make two events the same one, so that a copy counts once; cannot be changed later")
	f.Bool("dry-run", false, "say what would happen, and do nothing")
	f.Bool("yes", false, "drop and clear what the new retention does not allow")
	outputFlag(apply, asTable, asJSON, asNDJSON)
	return apply
}

// topicSession connects to the registry.
func topicSession(ctx context.Context, cmd *cobra.Command) (*session, error) {
	s, err := load(cmd)
	if err != nil {
		return nil, err
	}
	d, err := findEndpoints(s, false)
	if err != nil {
		return nil, err
	}
	return openRegistry(ctx, s, d)
}

func (a *app) topicsList(ctx context.Context, cmd *cobra.Command, _ []string) error {
	c, err := topicSession(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
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
}

func (a *app) topicsShow(ctx context.Context, cmd *cobra.Command, args []string) error {
	o, err := format(cmd, asYAML, asYAML, asJSON)
	if err != nil {
		return err
	}
	c, err := topicSession(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	t, err := c.reg.Topic(ctx, args[0])
	if err != nil {
		return err
	}
	shards, err := c.reg.Shards(ctx, t.Name, 0)
	if err != nil {
		return err
	}
	planned := registry.Plan(&t, shards)
	if o == asJSON {
		return a.printJSON(struct {
			schemas.Topic
			Retention outlook `json:"retention"`
		}{t, lookout(planned)})
	}
	for _, line := range retentionLines(&t, planned) {
		_, _ = fmt.Fprintln(a.stdout, "#", line)
	}
	e := yaml.NewEncoder(a.stdout)
	e.SetIndent(2)
	return e.Encode(map[string][]schemas.Topic{topicsKey: {t}})
}

// applied is what became of a topic.
type applied struct {
	Topic string           `json:"topic"`
	Did   registry.Applied `json:"did"`
	Now   schemas.Topic    `json:"now"`
	// Sooner is what goes, or is cleared, sooner than it would have been.
	Sooner []registry.Planned `json:"sooner,omitempty"`
}

func (a *app) topicsApply(ctx context.Context, cmd *cobra.Command, args []string) error {
	dryRun, _ := cmd.Flags().GetBool("dry-run")
	file, _ := cmd.Flags().GetString("file")
	if (file == "") == (len(args) == 0) {
		return usageError{errors.New("give either a topic or a file (-f)")}
	}
	c, err := topicSession(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	var topics []schemas.Topic
	if file != "" {
		topics, err = a.topicsFile(file)
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
	sooner := map[string][]registry.Planned{}
	for _, t := range topics { // all of them before the first is changed
		planned, err := a.tightened(ctx, c, t, yes || dryRun)
		if err != nil {
			return err
		}
		sooner[t.Name] = planned
	}
	var done []applied
	for _, t := range topics {
		now, did, err := c.reg.Apply(ctx, t, dryRun)
		if err != nil {
			return err
		}
		if dryRun {
			did = wouldBe[did]
		}
		done = append(done, applied{now.Name, did, now, sooner[now.Name]})
		if !dryRun {
			a.makeTable(ctx, c, &now)
		}
	}
	if dryRun {
		a.note("dry run: nothing was changed")
	}
	return printRows(a, cmd, done, func() table.Writer {
		t := newTable("topic", "did", "version", "fields")
		for _, d := range done {
			t.AppendRow(table.Row{d.Topic, d.Did, d.Now.Version, len(d.Now.Fields)})
		}
		return t
	})
}

// wouldBe is what a dry run says of a topic.
var wouldBe = map[registry.Applied]registry.Applied{
	registry.Created: "would be created", registry.Changed: "would be changed", registry.Unchanged: "would stay unchanged",
}

// makeTable makes the topic's table now, so that SQL finds it before the first
// event. Where that cannot be done, a sink does it with the first event.
func (a *app) makeTable(ctx context.Context, c *session, t *schemas.Topic) {
	if c.clickhouse == "" {
		return
	}
	db, err := tables.Open(c.clickhouse)
	if err == nil {
		if err = db.Ensure(ctx, t); err == nil {
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
func (a *app) topicsFile(name string) ([]schemas.Topic, error) {
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(io.LimitReader(a.stdin, maxStatement))
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

// topicByFlags is the live topic, or a new one, with what the flags say.
func topicByFlags(ctx context.Context, reg *registry.Registry, cmd *cobra.Command, name string) ([]schemas.Topic, error) {
	f, r := cmd.Flags(), reading{flags: cmd}
	t, err := reg.Topic(ctx, name)
	if errors.Is(err, schemas.ErrUnknownTopic) {
		t, err = schemas.NewTopicOf(schemas.Kind(r.flag("kind")), name), nil
	}
	if err != nil {
		return nil, err
	}
	if f.Changed("kind") {
		t.Kind = schemas.Kind(r.flag("kind"))
	}
	fields, _ := f.GetStringArray("field")
	for _, text := range fields {
		part := append(strings.SplitN(text, ":", 3), "")
		if len(part) < 3 {
			r.fail("field", fmt.Errorf("%q is not NAME:TYPE or NAME:TYPE:FROM", text))
			continue
		}
		t.Fields = append(t.Fields, schemas.Field{Name: part[0], Type: schemas.FieldType(part[1]), From: part[2]})
	}
	rules, _ := f.GetStringArray("pii")
	for _, text := range rules {
		field, rule, ok := strings.Cut(text, ":")
		if !ok {
			r.fail("pii", fmt.Errorf("%q is not FIELD:RULE", text))
		}
		t.PII = slices.DeleteFunc(slices.Clone(t.PII), func(p schemas.Private) bool { return p.Field == field })
		if rule != "" {
			t.PII = append(t.PII, schemas.Private{Field: field, Rule: schemas.PrivacyRule(rule)})
		}
	}
	if f.Changed("lanes") {
		t.Lanes, _ = f.GetInt("lanes")
	}
	if f.Changed("lane-by") {
		t.LaneBy, _ = f.GetStringSlice("lane-by")
	}
	if f.Changed("once-by") {
		t.OnceBy, _ = f.GetStringSlice("once-by")
	}
	if f.Changed("rotate-rows") {
		t.Rotate.Rows, _ = f.GetUint64("rotate-rows")
	}
	if f.Changed("rotate-bytes") {
		n, ok := parseSize(r.flag("rotate-bytes"))
		if !ok {
			r.fail("rotate-bytes", fmt.Errorf("%q is not a size, such as 2GiB", r.flag("rotate-bytes")))
		}
		t.Rotate.Bytes = uint64(max(n, 0))
	}
	if f.Changed("rotate-span") {
		d, ok := parseSpan(r.flag("rotate-span"))
		if !ok {
			r.fail("rotate-span", fmt.Errorf("%q is not a length of time, such as 24h", r.flag("rotate-span")))
		}
		t.Rotate.Span = d
	}
	if f.Changed("sql-fresh") {
		d, ok := parseSpan(r.flag("sql-fresh"))
		if !ok {
			r.fail("sql-fresh", fmt.Errorf("%q: expected a length of time, such as 10s", r.flag("sql-fresh")))
		}
		t.SQLFresh = d
	}
	if f.Changed("keep-days") {
		t.KeepDays, _ = f.GetInt("keep-days")
	}
	if f.Changed("anonymise-after") {
		t.Anonymise.AfterDays, _ = f.GetInt("anonymise-after")
	}
	if f.Changed("anonymise") {
		t.Anonymise.Fields, _ = f.GetStringSlice("anonymise")
	}
	return []schemas.Topic{t}, r.err
}
