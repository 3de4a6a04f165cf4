package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/timers"
)

// registryStream is what people call the stream of the registry's bucket.
const registryStream = "REGISTRY"

// boundStreams are the streams with a bound of bytes, by the names that people use.
var boundStreams = []string{schemas.StreamEvents, schemas.StreamShards, schemas.StreamDocs, schemas.StreamTimers, registryStream}

// streamRow is how full a stream is.
type streamRow struct {
	Stream   string `json:"stream"`
	Messages uint64 `json:"messages"`
	Keys     uint64 `json:"keys"`
	Bytes    uint64 `json:"bytes"`
	Bound    int64  `json:"bound_bytes"`
	// FreeForNew is what new keys, or events, may still add.
	FreeForNew int64 `json:"free_for_new_bytes"`
	// Copies are those that have all of the stream, of Replicas.
	Copies   int `json:"copies"`
	Replicas int `json:"replicas"`
	// HeldBy are those that hold the most of it, where that is known.
	HeldBy []holder `json:"held_by,omitempty"`
}

// holder is a group that holds some of a stream.
type holder struct {
	Topic string `json:"topic"`
	Group string `json:"group"`
	Bytes int64  `json:"bytes"`
}

// maxHolders bounds who is named.
const maxHolders = 5

func (a *app) streamsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "streams", Short: "Show how full the streams are, and give them more room",
		Long: `Show how full the streams of NATS are. Of DOCS and TIMERS a part is kept from what
is new, for removals and for what is due. Of TIMERS the groups are named that hold
the most.`,
		Args: unknownCommand, RunE: a.does(a.streams),
	}
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	list := &cobra.Command{Use: "ls", Short: "Show how full the streams are", Long: cmd.Long, Args: arguments(0, 0), RunE: cmd.RunE}
	outputFlag(list, asTable, asJSON, asNDJSON)
	apply := &cobra.Command{
		Use: "apply [STREAM]", Aliases: []string{"resize"}, Short: "Give a stream another bound, or streams copies, at once",
		Long: `Give a stream another bound, at once. Nothing is taken out of a stream that holds
more. A setting (events_bytes, shards_bytes, docs_bytes, timers_bytes, replicas) holds
from the next start on, so change that too where it is set. With --replicas the
stream, or every stream, gets so many copies, on servers that elect, and it waits
until each copy has all of its stream; to end it earlier changes nothing about that.`,
		Example: `  almanac streams apply TIMERS --bytes 4GiB
  almanac streams apply --replicas 3`,
		Args: arguments(0, 1), ValidArgs: boundStreams, RunE: a.does(a.streamsApply),
	}
	addFlags(apply, textFlag("bytes", "`SIZE` that the stream may hold, such as 4GiB"),
		numberFlag("replicas", "`NUMBER` of copies: 1, 3 or 5"))
	outputFlag(apply, asTable, asJSON)
	cmd.AddCommand(list, apply)
	return cmd
}

func (a *app) streams(ctx context.Context, cmd *cobra.Command, _ []string) error {
	return whenNATS(ctx, cmd, func(c *session) error {
		rows := make([]streamRow, len(boundStreams))
		for i, name := range boundStreams {
			var err error
			if rows[i], err = streamUse(ctx, c, name); err != nil {
				return err
			}
		}
		return printRows(a, cmd, rows, func() table.Writer { return streamsTable(rows) })
	})
}

func (a *app) streamsApply(ctx context.Context, cmd *cobra.Command, args []string) error {
	text, _ := cmd.Flags().GetString("bytes")
	bytes, ok := parseSize(text)
	if text != "" && (!ok || bytes < 1<<20) {
		return usageError{fmt.Errorf("--bytes: %q is not a size of 1MiB or more, such as 512MiB or 8GiB", text)}
	}
	copies, _ := cmd.Flags().GetInt("replicas")
	replicate := cmd.Flags().Changed("replicas")
	if replicate && len(args) == 0 {
		return a.streamsReplicate(ctx, cmd, copies, allStreams)
	}
	if len(args) == 0 {
		return usageError{fmt.Errorf("say which stream, and how much it may hold: almanac streams apply EVENTS --bytes 4GiB; or --replicas for all of them")}
	}
	name := strings.ToUpper(args[0])
	if !slices.Contains(boundStreams, name) {
		return usageError{fmt.Errorf("%q is not one of: %s%s", args[0], strings.Join(boundStreams, ", "), suggestion(name, boundStreams, ""))}
	}
	if replicate {
		return a.streamsReplicate(ctx, cmd, copies, []string{name})
	}
	if text == "" {
		return usageError{fmt.Errorf("say how much %s may hold: --bytes 4GiB", name)}
	}
	return whenNATS(ctx, cmd, func(c *session) error {
		if err := streams.Bound(ctx, c.reg.JetStream(), streamNamed(name), bytes); err != nil {
			return err
		}
		row, err := streamUse(ctx, c, name)
		if err != nil {
			return err
		}
		if int64(row.Bytes) > bytes {
			a.note("%s holds %s: it takes nothing until it holds less than %s", name, schemas.FormatBytes(float64(row.Bytes)), schemas.FormatBytes(float64(bytes)))
		}
		if format(cmd, asTable) == asJSON {
			return a.printJSON(row)
		}
		return a.printTable(streamsTable([]streamRow{row}))
	})
}

// streamNamed is the stream in NATS.
func streamNamed(name string) string {
	if name == registryStream {
		return schemas.KVStream
	}
	return name
}

func streamUse(ctx context.Context, c *session, name string) (streamRow, error) {
	info, err := streams.Info(ctx, c.reg.JetStream(), streamNamed(name))
	if err != nil {
		return streamRow{}, fmt.Errorf("stream %s: %w", name, err)
	}
	row := streamRow{Stream: name, Messages: info.State.Msgs, Keys: info.State.NumSubjects, Bytes: info.State.Bytes, Bound: info.Config.MaxBytes}
	copies := streams.ReplicasOf(info)
	row.Copies, row.Replicas = copies.Current, copies.Want
	use, purpose := fronts.Use{Stream: name, Keys: row.Keys, Bytes: row.Bytes, Limit: row.Bound}, fronts.End
	if name == schemas.StreamDocs || name == schemas.StreamTimers {
		purpose = fronts.Grow
	}
	row.FreeForNew = max(use.Free(purpose), 0)
	if name == schemas.StreamTimers {
		row.HeldBy, err = timerHolders(ctx, c)
	}
	return row, err
}

// timerHolders are the groups that hold the most of TIMERS.
func timerHolders(ctx context.Context, c *session) ([]holder, error) {
	topics, err := c.reg.Topics(ctx)
	if err != nil {
		return nil, err
	}
	var out []holder
	for i := range topics {
		if topics[i].Kind != kinds.Timer {
			continue
		}
		t, err := timers.Open(ctx, c.nc, c.reg, topics[i].Name, timers.Config{})
		if err != nil {
			return nil, err
		}
		groups, err := t.Status(ctx)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			if g.Bytes > 0 {
				out = append(out, holder{topics[i].Name, g.Group, g.Bytes})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out[:min(len(out), maxHolders)], nil
}

func streamsTable(rows []streamRow) table.Writer {
	w := newTable("stream", "messages", "keys", "holds", "bound", "full", "free for new", "copies", "held by")
	for _, r := range rows {
		bound, full, free := "none", "", ""
		if r.Bound > 0 {
			bound, full = schemas.FormatBytes(float64(r.Bound)), fmt.Sprintf("%.0f %%", 100*float64(r.Bytes)/float64(r.Bound))
			free = schemas.FormatBytes(float64(r.FreeForNew))
		}
		by := make([]string, len(r.HeldBy))
		for i, h := range r.HeldBy {
			by[i] = h.Group + " " + schemas.FormatBytes(float64(h.Bytes))
		}
		w.AppendRow(table.Row{r.Stream, r.Messages, r.Keys, schemas.FormatBytes(float64(r.Bytes)), bound, full, free, fmt.Sprintf("%d of %d", r.Copies, r.Replicas), strings.Join(by, ", ")})
	}
	return w
}
