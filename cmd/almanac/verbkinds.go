package main

import (
	"cmp"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// verbKinds are the kinds of the topics that verbs are for, by the first word of each.
var verbKinds = map[string]kinds.Kind{
	"docs": kinds.Document, "usage": kinds.Meter, "series": kinds.Metric, "align": kinds.Metric, "trail": kinds.Audit, "audit": kinds.Audit,
}

// nameKind has an error about the topic that a verb was given say of which kind it is declared.
func nameKind(cmd *cobra.Command, err error) {
	unknown := (*registry.UnknownTopicError)(nil)
	words := strings.Fields(cmd.CommandPath())
	if errors.As(err, &unknown) && len(words) > 1 && unknown.Name == cmd.Flags().Arg(0) {
		unknown.Kind = cmp.Or(unknown.Kind, verbKinds[words[1]])
	}
}
