package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

// app is one call of the command.
type app struct {
	stdin  io.Reader
	stdout io.Writer // data
	stderr io.Writer // everything else

	// running is set once a verb's own code runs: an error before that is one of
	// usage.
	running bool
}

// run is the whole command; the result is the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: onScreen(stdout, false), stderr: onScreen(stderr, true)}
	defer a.endScreens()
	if !colours(stderr) {
		text.DisableColors()
	}
	ctx, stop := untilSignal(context.Background())
	defer stop()
	return a.execute(ctx, args)
}

// endScreens shows the bytes of a character of which a terminal was given the beginning alone (screen.go).
func (a *app) endScreens() {
	for _, w := range []io.Writer{a.stdout, a.stderr} {
		if s, ok := w.(*screen); ok {
			s.end()
		}
	}
}

// execute runs the verb that args name and returns the exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.running {
		err = usageHint(cmd, err)
	}
	nameKind(cmd, err)
	if a.running {
		err = explained(ctx, cmd, err)
	}
	code := exitCode(err, stopCause(ctx))
	if err != nil && code != exitInterrupted && !errors.Is(err, errSaid) && !errors.Is(err, errPartial) {
		a.note("%s", formatError(err))
	}
	return code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "almanac",
		Short: "An event log you can query",
		Long: `Almanac is an event log you can query. "almanac up" runs all of it on this
machine; the other verbs find it by its data directory (--data), or take
--nats and --clickhouse.

Data goes to stdout, everything else to stderr.`,
		Annotations:  ofAll().declared(),
		SilenceUsage: true, SilenceErrors: true,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	keyFlags(root.PersistentFlags(), "data", "nats", "nats_creds", "nats_ca", "nats_cert", "nats_key", "clickhouse", "clickhouse_ca", "log_level", "log_format")
	addFlagsTo(root, root.PersistentFlags(), textFlag("config", "`FILE` of settings (default: the first "+configName+" here, in ~/.config/almanac, in /etc/almanac)"))
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run:"},
		&cobra.Group{ID: groupData, Title: "Events in and out:"},
		&cobra.Group{ID: groupLook, Title: "Look and prove:"},
	)
	for id, commands := range map[string][]*cobra.Command{
		groupRun:  {a.upCommand(), a.routerCommand(), a.sinkCommand(), a.gatewayCommand(), a.setupCommand(), a.configCommand(), a.tokenCommand()},
		groupData: {a.sendCommand(), a.queryCommand(), a.facetsCommand(), a.fieldsCommand(), a.valuesCommand(), a.tailCommand(), a.replayCommand(), a.sqlCommand(), a.usageCommand(), a.seriesCommand(), a.alignCommand(), a.trailCommand(), a.alertsCommand(), a.eraseCommand(), a.topicsCommand(), a.timersCommand(), a.docsCommand()},
		groupLook: {a.verifyCommand(), a.auditCommand(), a.repairCommand(), a.rebuildCommand(), a.backupCommand(), a.restoreCommand(), a.doctorCommand(), a.readyCommand(), a.shardsCommand(), a.streamsCommand(), a.lagCommand(), a.topCommand(), a.mcpCommand(), a.deadCommand(), a.benchCommand(), a.versionCommand()},
	} {
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	helpExits(root)
	root.AddCommand(a.manCommand())
	return root
}

const (
	groupRun  = "run"
	groupData = "data"
	groupLook = "look"
)

// verb is a command's own code.
type verb func(ctx context.Context, cmd *cobra.Command, args []string) error

// does makes a verb the body of a command: first all flags are checked, a relative time is taken once, and what
// is exposed is said.
func (a *app) does(v verb) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.running = true
		if err := cmp.Or(checkFormat(cmd), checkFlags(cmd)); err != nil {
			return err
		}
		pinTimes(cmd)
		for _, w := range exposed(cmd.Flags()) {
			a.note("%s", w)
		}
		return v(cmd.Context(), cmd, args)
	}
}

// usageGroup is a command that only holds others.
func usageGroup(c *cobra.Command, members ...*cobra.Command) *cobra.Command {
	c.Args = unknownCommand
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	c.AddCommand(members...)
	return c
}

// unknownCommand refuses words that name no subcommand.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), suggestion(args[0], names, ""))
}

func usageHint(cmd *cobra.Command, err error) error {
	return usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
}
