package main

import (
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-events/almanac/internal/operations"
)

// flagsOf gives a verb flags of parameters that its operation declares: with their type, help text, default, and the words
// that a shell completes.
func flagsOf(cmd *cobra.Command, op *operations.Operation, names ...string) {
	for _, name := range names {
		p := op.Param(name)
		f, flag := cmd.Flags(), p.FlagName()
		switch p.Kind {
		case operations.Switch:
			f.Bool(flag, false, p.Help)
		case operations.Number:
			n, _ := strconv.Atoi(p.Default)
			f.Int(flag, n, p.Help)
		case operations.Texts:
			f.StringArray(flag, nil, p.Help)
		default:
			f.String(flag, p.Default, p.Help)
		}
		if len(p.Words) > 0 {
			_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(p.Words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// rangeFlags are --from and --to of verbs that read events.
func rangeFlags(cmd *cobra.Command) {
	cmd.Flags().String("from", "", "`TIME` at which the range begins")
	cmd.Flags().String("to", "", "`TIME` at which the range ends; an event of that time is not in it")
}

// whereFlag is --where of verbs that read events of any topic.
func whereFlag(cmd *cobra.Command) {
	cmd.Flags().String("where", "", "`FILTER` over columns, promoted fields and attributes")
}

// cursorFlag is --cursor of verbs that print pages.
func cursorFlag(cmd *cobra.Command) {
	cmd.Flags().String("cursor", "", "`CURSOR` of the page before")
}

// waitingFlag is --wait of verbs that answer from ClickHouse.
func waitingFlag(cmd *cobra.Command) {
	cmd.Flags().String("wait", "15s", "`TIME` without progress after which it no longer waits for what was accepted to be stored; 0: do not wait")
}

// given reads a flag into a value, which stays as it is where the flag was not passed.
func given[T any](f *pflag.FlagSet, name string, get func(string) (T, error), into *T) {
	if f.Changed(name) {
		*into, _ = get(name)
	}
}
