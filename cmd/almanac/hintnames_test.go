package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-events/almanac/internal/access"
)

var (
	anyFlag     = regexp.MustCompile("(?:^|[\\s(`\"'/|])--([a-z][a-z0-9-]+)")
	anyVariable = regexp.MustCompile(`\bALMANAC_[A-Z0-9_]+`)
	anyFile     = regexp.MustCompile(`(?:^|[^A-Za-z0-9/.#-])((?:docs|deploy|bench|schemas|integration|internal|cmd)/[A-Za-z0-9_./-]+)`)
	anyTarget   = regexp.MustCompile("`make ([a-z-]+)")
)

// foreignFlags are those of other programs that texts name: curl's, npm's, claude's, docker's, logcli's, git's, and of nats. help is every command's.
var foreignFlags = map[string]bool{"help": true, "data-binary": true, "no-save": true, "transport": true, "build": true, "tail": true, "subject": true, "interactive": true, "version": true}

// ofOthers are files that make the command lines of other programs, or have flags of their own.
var ofOthers = []string{"../../integration/", "../../internal/bench/", "../../bench/", "../../internal/release/", "../../query/logql/", "../../internal/embedded/command.go", "../../docs/measurements.md"}

// A flag, a variable of the environment, a file of the tree or a target of make that a text names is one that there is, also where no command stands
// before it.
func TestNamesInTextsAreThere(t *testing.T) {
	t.Parallel()
	flags, variables, targets := allFlags(wholeRoot()), declaredVariables(t), makeTargets(t)
	var found struct{ flags, variables, files, targets int }
	told(t, func(path string, texts []string) {
		others := false
		for _, o := range ofOthers {
			others = others || strings.HasPrefix(filepath.ToSlash(path), o)
		}
		for _, text := range texts {
			for _, m := range anyFlag.FindAllStringSubmatch(text, -1) {
				if others || foreignFlags[m[1]] {
					continue
				}
				if found.flags++; !flags[m[1]] {
					t.Errorf("%s: no command has the flag --%s", path, m[1])
				}
			}
			for _, name := range anyVariable.FindAllString(text, -1) {
				if found.variables++; !variables[name] && !(strings.HasSuffix(name, "_") && begins(variables, name)) {
					t.Errorf("%s: nothing reads %s", path, name)
				}
			}
			for _, m := range anyFile.FindAllStringSubmatch(text, -1) {
				name := strings.TrimRight(m[1], "./-")
				if found.files++; name != "" {
					if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
						t.Errorf("%s: %v", path, err)
					}
				}
			}
			for _, m := range anyTarget.FindAllStringSubmatch(text, -1) {
				if found.targets++; !targets[m[1]] {
					t.Errorf("%s: make has no target %s", path, m[1])
				}
			}
		}
	})
	if found.flags < 200 || found.variables < 50 || found.files < 50 || found.targets < 20 {
		t.Errorf("found are only %+v", found)
	}
}

// allFlags are those of a command and of all below it.
func allFlags(c *cobra.Command) map[string]bool {
	flags := map[string]bool{}
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		for _, set := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
		}
		for _, below := range c.Commands() {
			add(below)
		}
	}
	add(c)
	return flags
}

// declaredVariables are those of settings, those that configurations of NATS take passwords from, and those that some Go file, a test's too, has as a string of its own.
func declaredVariables(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{envPrefix + "CONFIG": true}
	for i := range keys {
		names[keys[i].env()] = true
		if keys[i].secret {
			names[keys[i].env()+"_FILE"] = true
		}
	}
	for _, u := range access.NATSUsers() {
		names[access.NATSPasswordKey(u.Name)] = true
	}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" {
			if err == nil && e.IsDir() && (e.Name() == "node_modules" || strings.HasPrefix(e.Name(), ".") && e.Name() != "..") {
				return filepath.SkipDir
			}
			return err
		}
		texts, err := literals(path)
		for _, text := range texts {
			if name := strings.TrimSuffix(text, "="); anyVariable.FindString(name) == name {
				names[name] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func begins(names map[string]bool, with string) bool {
	for name := range names {
		if strings.HasPrefix(name, with) && name != with {
			return true
		}
	}
	return false
}

func makeTargets(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(string(text), -1) {
		targets[m[1]] = true
	}
	return targets
}
