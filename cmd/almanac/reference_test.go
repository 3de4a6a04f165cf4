package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/markdown"
	"github.com/almanac-events/almanac/internal/operations"
)

// runnable are the commands that do something of their own, by their path without "almanac".
func runnable() map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		if path != "" && (!c.HasSubCommands() || c.Args == nil || c.Flags().HasFlags()) && c.Runnable() {
			all[path] = c
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{}).root())
	return all
}

// What can be asked for has both doors, or says why it has one. A new verb or route is decided on in operations.Ways.
func TestWays(t *testing.T) {
	t.Parallel()
	verbs, routes := map[string]bool{}, map[*operations.Operation]bool{}
	for _, d := range operations.Ways {
		if (d.Why == "") != (d.Verb != "" && len(d.Routes) > 0) {
			t.Errorf("%q with %d routes: both doors, or why not: %q", d.Verb, len(d.Routes), d.Why)
		}
		if d.Verb != "" && verbs[d.Verb] {
			t.Errorf("%s is listed twice", d.Verb)
		}
		verbs[d.Verb] = true
		for _, op := range d.Routes {
			if routes[op] {
				t.Errorf("%s %s is listed twice", op.Method, op.Path)
			}
			routes[op] = true
		}
	}
	delete(verbs, "")
	commands := runnable()
	for verb := range commands {
		if !verbs[verb] {
			t.Errorf("almanac %s is not in operations.Ways", verb)
		}
	}
	for verb := range verbs {
		if commands[verb] == nil {
			t.Errorf("there is no almanac %s", verb)
		}
	}
	for _, op := range operations.All {
		if !routes[op] {
			t.Errorf("%s %s is not in operations.Ways", op.Method, op.Path)
		}
	}
}

// docs/reference.md is what the verbs and the operations declare. ALMANAC_WRITE=1 writes it.
func TestReference(t *testing.T) {
	t.Parallel()
	if err := markdown.File("../../docs/reference.md", reference(), os.Getenv("ALMANAC_WRITE") != ""); err != nil {
		t.Errorf("%v: make reference", err)
	}
}

// reference is the page: verbs with their flags, then routes with their parameters.
func reference() string {
	var b strings.Builder
	b.WriteString("# Reference\n\nMade of the declarations by `make reference`; a test compares.\n\n## Verbs\n\nFlags of every verb: `--data`, `--nats`, `--nats-creds`, `--clickhouse`, `--log-level`, `--log-format`, `--config`.\n")
	over := map[string][]string{}
	for _, d := range operations.Ways {
		for _, op := range d.Routes {
			over[d.Verb] = append(over[d.Verb], "`"+op.Method+" "+op.Path+"`")
		}
	}
	commands := runnable()
	for _, verb := range slices.Sorted(maps.Keys(commands)) {
		c := commands[verb]
		fmt.Fprintf(&b, "\n### almanac %s\n\n%s.\n", verb, c.Short)
		if len(over[verb]) > 0 {
			fmt.Fprintf(&b, "Over HTTP: %s.\n", strings.Join(over[verb], ", "))
		}
		if e := exitsOf(c); len(e) > 0 {
			fmt.Fprintf(&b, "Exit codes:%s.\n", strings.ReplaceAll(e.lines(), "\n", ";")[1:])
		}
		fmt.Fprintf(&b, "\n```\n%s\n", c.UseLine())
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			value, usage := pflag.UnquoteUsage(f)
			fmt.Fprintf(&b, "  --%s: %s\n", strings.TrimSpace(f.Name+" "+value), usage)
		})
		b.WriteString("```\n")
	}
	b.WriteString("\n## Exit codes\n\nA verb says what else one of them means there.\n\n| code | name | meaning | what to do |\n|---|---|---|---|\n")
	for _, x := range exitCodes {
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", x.Code, x.Name, x.Meaning, x.Remedy)
	}
	b.WriteString("\n## Routes\n\nTypes of bodies and answers are in `/openapi.yaml`. A token comes as `Authorization: Bearer alm_…`, as the password of Basic, as Elastic's `ApiKey`, or as `X-ClickHouse-Key`.\n\n| role | what its token may do |\n|---|---|\n")
	for _, r := range access.Rights {
		fmt.Fprintf(&b, "| %s | %s |\n", r.Role, r.Short)
	}
	for _, op := range operations.All {
		fmt.Fprintf(&b, "\n### %s %s\n\n%s.\n", op.Method, op.Path, op.Summary)
		if op.Description != "" {
			fmt.Fprintf(&b, "%s\n", op.Description)
		}
		fmt.Fprintf(&b, "%s.\n", op.Right.Needs())
		for i := range op.Params {
			p := &op.Params[i]
			if i == 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "- `%s`: %s", p.Name, p.Description())
			if len(p.Words) > 0 {
				fmt.Fprintf(&b, " (%s)", strings.Trim(strings.Join(p.Words, ", "), ", "))
			}
			if p.Default != "" {
				fmt.Fprintf(&b, " (default %s)", p.Default)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
