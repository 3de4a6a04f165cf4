package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// arguments accepts from least to most arguments; most below 0 is unlimited. Its errors
// name what the command's usage line calls them.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		names := placeholders(cmd.Use)
		switch {
		case len(args) < least && len(args) < len(names):
			return fmt.Errorf("%s needs %s: %s", cmd.CommandPath(), names[len(args)], cmd.UseLine())
		case len(args) < least:
			return fmt.Errorf("%s needs %s, got %d: %s", cmd.CommandPath(), plural(least, "argument"), len(args), cmd.UseLine())
		case most == 0 && len(args) > 0:
			return fmt.Errorf("unexpected argument %q: %s takes none", args[0], cmd.CommandPath())
		case most > 0 && len(args) > most:
			return fmt.Errorf("unexpected argument %q: %s takes %s at most: %s", args[most], cmd.CommandPath(), plural(most, "argument"), cmd.UseLine())
		}
		return nil
	}
}

// placeholders returns the words of a usage line that stand for arguments, without brackets.
func placeholders(use string) (names []string) {
	for _, word := range strings.Fields(use)[1:] {
		if strings.HasPrefix(word, "-") || word == "|" {
			break
		}
		if name := strings.Trim(word, "[]…."); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// flagError says what is wrong with a flag, which values it takes, and names the nearest
// flag to one that does not exist.
func flagError(cmd *cobra.Command, err error) error {
	var (
		missing *pflag.NotExistError
		bad     *pflag.InvalidValueError
		empty   *pflag.ValueRequiredError
	)
	switch {
	case errors.As(err, &bad):
		return fmt.Errorf("--%s: %q is not %s", bad.GetFlag().Name, bad.GetValue(), expected(bad.GetFlag()))
	case errors.As(err, &empty):
		name, _ := pflag.UnquoteUsage(empty.GetFlag())
		return fmt.Errorf("--%s needs a value: --%s %s", empty.GetFlag().Name, empty.GetFlag().Name, name)
	case !errors.As(err, &missing) || missing.GetSpecifiedShortnames() != "":
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return fmt.Errorf("%w%s", err, suggestion(missing.GetSpecifiedName(), names, "--"))
}

// expected names the values a flag takes.
func expected(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64", "int32":
		return "a whole number, such as 10"
	case "uint", "uint64", "uint32":
		return "a whole number of 0 or more, such as 10"
	case "float64":
		return "a number, such as 1.5"
	case "intSlice":
		return "whole numbers, such as 429 or 408,429"
	case "bool":
		return "true or false"
	case "duration":
		return "a length of time, such as 30s or 5m"
	}
	return "a value of this flag"
}
