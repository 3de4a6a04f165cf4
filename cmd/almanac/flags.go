package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// rangeFlags are --from and --to of verbs that read events.
func rangeFlags(cmd *cobra.Command) {
	cmd.Flags().String("from", "", "`TIME` at which the range begins")
	cmd.Flags().String("to", "", "`TIME` at which the range ends; an event of that time is not in it")
}

// whereFlag is --where of verbs that read events of any topic.
func whereFlag(cmd *cobra.Command) {
	cmd.Flags().String("where", "", "`FILTER` over columns, promoted fields and attributes")
}

// seriesFlag is --where of verbs that read points.
func seriesFlag(cmd *cobra.Command) {
	cmd.Flags().String("where", "", "only series that match a `FILTER` over type, service, user_id, unit and attributes.LABEL")
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
