package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-events/almanac/internal/operations"
)

// Every flag is made of a declaration: of a parameter, or of a setting. One of both doors is that of the operation:
// with its text, its type and its default.
func TestFlagsAreDeclared(t *testing.T) {
	t.Parallel()
	root := (&app{}).root()
	undeclared := func(c *cobra.Command, flags *pflag.FlagSet) {
		flags.VisitAll(func(f *pflag.Flag) {
			if _, is := f.Annotations[flagWords]; !is && len(f.Annotations[ofSetting]) == 0 && f.Name != "help" {
				t.Errorf("%s --%s is not made of a declaration", c.CommandPath(), f.Name)
			}
		})
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		undeclared(c, c.LocalNonPersistentFlags())
		undeclared(c, c.PersistentFlags())
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(root)
	own := map[string]string{
		"send --format":   "over HTTP the content type is its default",
		"trail --actor":   "the command line hashes the user's own name",
		"dead ls --limit": "a terminal may have them all",
	}
	commands, compared := runnable(), 0
	for _, way := range operations.Ways {
		declared := map[string][]*pflag.Flag{} // by each route of the verb
		for _, op := range way.Routes {
			for _, name := range op.Names() {
				alone := &cobra.Command{}
				flagsOf(alone, op, name)
				alone.Flags().VisitAll(func(f *pflag.Flag) { declared[f.Name] = append(declared[f.Name], f) })
			}
		}
		for name, wanted := range declared {
			if way.Verb == "" || commands[way.Verb].Flags().Lookup(name) == nil {
				continue
			}
			f, at := commands[way.Verb].Flags().Lookup(name), way.Verb+" --"+name
			same := slices.ContainsFunc(wanted, func(want *pflag.Flag) bool {
				return f.DefValue == want.DefValue && f.Value.Type() == want.Value.Type() && strings.Contains(f.Usage, want.Usage)
			})
			if same == (own[at] != "") {
				t.Errorf("%s: %s %q (%s), declared is %s %q (%s), and the list of others says %q", at, f.Value.Type(), f.Usage, f.DefValue, wanted[0].Value.Type(), wanted[0].Usage, wanted[0].DefValue, own[at])
			}
			compared++
		}
	}
	if compared < 60 {
		t.Errorf("%d flags of both doors were compared: the test looks in the wrong place", compared)
	}
}

// What a declaration rules out is refused before a server is asked.
func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"timers", "ls", "mails", "--state", "firin"}, `--state: "firin" is not one of pending, firing, done, failed or cancelled`},
		{[]string{"timers", "ls", "mails", "--limit", "1001"}, "--limit: 1001 is not 1 to 1000"},
		{[]string{"timers", "ls", "mails", "--slot", "-1"}, "--slot: -1 is not 0 to 4095"},
		{[]string{"docs", "ls", "notes", "--limit", "0"}, "--limit: 0 is not 1 to 1000"},
		{[]string{"query", "app", "--order", "up"}, `--order: "up" is not one of desc or asc`},
		{[]string{"send", "app", "--format", "jsn"}, "did you mean json?"},
		{[]string{"replay", "app", "--order", "tim"}, "did you mean time?"},
	} {
		if r := inProcess(t, append(c.args, "--data", t.TempDir())...); r.code != exitUsage || !strings.Contains(r.err, c.says) {
			t.Errorf("%v: exit %d, %q", c.args, r.code, r.err)
		}
	}
}
