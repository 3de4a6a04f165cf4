package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-events/almanac/internal/operations"
)

// A flag is made of a parameter's declaration. Those of what is asked over HTTP too are of its operation (flagsOf). The
// functions below declare those that the command line alone has.

func switchFlag(name, help string) operations.Param {
	return operations.Param{Name: name, Kind: operations.Switch, Help: help}
}

func textFlag(name, help string) operations.Param { return operations.Param{Name: name, Help: help} }

func textsFlag(name, help string) operations.Param {
	return operations.Param{Name: name, Kind: operations.Texts, Help: help}
}

func namesFlag(name, help string) operations.Param {
	return operations.Param{Name: name, Kind: operations.Names, Again: true, Help: help}
}

func numberFlag(name, help string) operations.Param {
	return operations.Param{Name: name, Kind: operations.Number, Help: help}
}

func numbersFlag(name, help string) operations.Param {
	return operations.Param{Name: name, Kind: operations.Numbers, Help: help}
}

func signedFlag(name, help string) operations.Param {
	return operations.Param{Name: name, Kind: operations.Signed, Help: help}
}

func amountFlag(name, help string) operations.Param {
	return operations.Param{Name: name, Kind: operations.Amount, Help: help}
}

func fractionFlag(name, help string) operations.Param {
	return operations.Param{Name: name, Kind: operations.Fraction, Help: help}
}

func lengthFlag(name, help string) operations.Param {
	return operations.Param{Name: name, Kind: operations.Length, Help: help}
}

func tokenFlag(name, help string) operations.Param {
	return operations.Param{Name: name, Kind: operations.Token, Help: help}
}

// orElse gives a parameter a default.
func orElse(p operations.Param, def any) operations.Param {
	p.Default = fmt.Sprint(def)
	return p
}

// short gives a parameter a letter.
func short(p operations.Param, letter string) operations.Param {
	p.Letter = letter
	return p
}

// oneOfWords gives a parameter the words that there are.
func oneOfWords[T ~string](p operations.Param, words ...T) operations.Param {
	for _, w := range words {
		p.Words = append(p.Words, string(w))
	}
	return p
}

// Annotations of a flag that was made of a declaration: the words that it takes, and its least and most.
const (
	flagWords  = "almanac: words"
	flagBounds = "almanac: bounds"
)

// addFlags gives a command the flags of parameters: with their type, help text, default, and the words that a shell
// completes.
func addFlags(cmd *cobra.Command, params ...operations.Param) {
	addFlagsTo(cmd, cmd.Flags(), params...)
}

func addFlagsTo(cmd *cobra.Command, flags *pflag.FlagSet, params ...operations.Param) {
	for i := range params {
		p := &params[i]
		name := p.FlagName()
		addFlag(flags, p, name)
		f := flags.Lookup(name)
		if fewWords(p) {
			f.Usage += ": " + listed(p.Words)
		}
		f.NoOptDefVal = cmp.Or(p.Bare, f.NoOptDefVal)
		if p.Required {
			f.Usage += " (required)"
		}
		f.Annotations = map[string][]string{flagWords: p.Words}
		if p.Most > p.Least {
			f.Annotations[flagBounds] = []string{strconv.Itoa(p.Least), strconv.Itoa(p.Most)}
		}
		if len(p.Words) > 0 {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(p.Words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// checkFlags refuses what the declarations of flags rule out, before a verb does anything.
func checkFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if wrong := wrongFlag(f); wrong != nil && err == nil {
			err = usageError{fmt.Errorf("--%s: %w", f.Name, wrong)}
		}
	})
	return err
}

// wrongFlag says what is wrong with the value of a flag.
func wrongFlag(f *pflag.Flag) error {
	value := f.Value.String()
	if words := f.Annotations[flagWords]; len(words) > 0 && !slices.Contains(words, value) {
		return fmt.Errorf("%q is not one of %s%s", value, listed(words), suggestion(value, words, ""))
	}
	if bounds := f.Annotations[flagBounds]; bounds != nil {
		least, _ := strconv.Atoi(bounds[0])
		most, _ := strconv.Atoi(bounds[1])
		if n, err := strconv.Atoi(value); err == nil && (n < least || n > most) {
			return fmt.Errorf("%d is not %d to %d", n, least, most)
		}
	}
	return nil
}

// fewWords says that the help of a parameter names the words that there are.
func fewWords(p *operations.Param) bool {
	return len(p.Words) > 0 && len(p.Words) <= 8 && !slices.ContainsFunc(p.Words, func(w string) bool { return w != "" && strings.Contains(p.Help, w) })
}

// listed are words as a sentence has them.
func listed(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// addFlag adds the flag of a parameter's kind. A default that is not of the kind is a fault of the program.
func addFlag(f *pflag.FlagSet, p *operations.Param, name string) {
	switch p.Kind {
	case operations.Switch:
		f.BoolP(name, p.Letter, defaultOf(p, strconv.ParseBool), p.Help)
	case operations.Number:
		f.IntP(name, p.Letter, defaultOf(p, strconv.Atoi), p.Help)
	case operations.Signed:
		f.Int64P(name, p.Letter, defaultOf(p, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }), p.Help)
	case operations.Amount:
		f.Uint64P(name, p.Letter, defaultOf(p, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }), p.Help)
	case operations.Fraction:
		f.Float64P(name, p.Letter, defaultOf(p, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }), p.Help)
	case operations.Length:
		f.DurationP(name, p.Letter, defaultOf(p, time.ParseDuration), p.Help)
	case operations.Token:
		f.VarP(new(ordinal), name, p.Letter, p.Help)
	case operations.Texts:
		f.StringArrayP(name, p.Letter, nil, p.Help)
	case operations.Numbers:
		f.IntSliceP(name, p.Letter, nil, p.Help)
	case operations.Names:
		if !p.Again {
			f.StringP(name, p.Letter, p.Default, p.Help)
			return
		}
		f.StringSliceP(name, p.Letter, defaultOf(p, func(s string) ([]string, error) { return strings.Split(s, ","), nil }), p.Help)
	default:
		f.StringP(name, p.Letter, p.Default, p.Help)
	}
}

// defaultOf is the default of a parameter as its type; nothing where it does not have one.
func defaultOf[T any](p *operations.Param, parse func(string) (T, error)) T {
	var none T
	if p.Default == "" {
		return none
	}
	v, err := parse(p.Default)
	if err != nil {
		panic(fmt.Sprintf("flag --%s: its default: %v", p.FlagName(), err))
	}
	return v
}

// flagOf is a parameter that an operation declares.
func flagOf(op *operations.Operation, name string) operations.Param {
	p := op.Param(name)
	if p == nil {
		panic(fmt.Sprintf("%s %s does not declare %s", op.Method, op.Path, name))
	}
	return *p
}

// flagsOf gives a verb flags of parameters that its operation declares.
func flagsOf(cmd *cobra.Command, op *operations.Operation, names ...string) {
	for _, name := range names {
		addFlags(cmd, flagOf(op, name))
	}
}

// given reads a flag into a value, which stays as it is where the flag was not passed.
func given[T any](f *pflag.FlagSet, name string, get func(string) (T, error), into *T) {
	if f.Changed(name) {
		*into, _ = get(name)
	}
}
