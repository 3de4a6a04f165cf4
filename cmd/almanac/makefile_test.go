package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A machine that has neither npm nor a C compiler: make gets both from apt where it runs as root on
// Debian, and names them elsewhere. An engine that is there, or a ClickHouse that is named, needs no npm.
func TestMakeOnFreshMachine(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	for _, name := range []string{"make", "bash", "env"} {
		at, err := exec.LookPath(name)
		if err != nil {
			t.Skip(name + " is not installed")
		}
		if err := os.Symlink(at, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	program := func(dir, name, script string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	program(tools, "go", "echo gcc")
	root, user := t.TempDir(), t.TempDir()
	program(root, "id", "echo 0")
	program(user, "id", "echo 1000")
	debian := t.TempDir()
	program(debian, "apt-get", `echo apt-get "$@"`)
	tree := t.TempDir()
	for _, name := range []string{"Makefile", "package.json", "package-lock.json", ".npmrc"} {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(tree, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		path   []string
		args   []string
		fails  bool
		prints []string
	}{
		"up, root on Debian":                 {[]string{root, debian}, []string{"up"}, false, []string{"apt-get update", "apt-get install -qy --no-install-recommends npm"}},
		"test, root on Debian":               {[]string{root, debian}, []string{"test"}, false, []string{"--no-install-recommends gcc libc6-dev", "--no-install-recommends npm"}},
		"up, a user":                         {[]string{user, debian}, []string{"up"}, true, []string{"this machine lacks: npm", "install them, then try again"}},
		"test, root elsewhere":               {[]string{root}, []string{"test"}, true, []string{"this machine lacks: gcc libc6-dev", "install them, then try again"}},
		"up, a user, a ClickHouse elsewhere": {[]string{user}, []string{"up", "ARGS=--clickhouse http://host:8123"}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// What make needs of the tree is run; what builds and tests is only looked up.
			targets := map[string][]string{"up": {"need-engine"}, "test": {"need-compiler", "need-engine"}}[c.args[0]]
			env := []string{"PATH=" + strings.Join(append(c.path, tools), ":")}
			cmd := exec.CommandContext(t.Context(), filepath.Join(tools, "make"), append(append([]string{"--silent"}, targets...), c.args[1:]...)...)
			cmd.Dir, cmd.Env = tree, env
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails {
				t.Errorf("make %v: %v, want a failure: %v\n%s", c.args, err, c.fails, out)
			}
			for _, want := range c.prints {
				if !strings.Contains(string(out), want) {
					t.Errorf("make %v does not print %q but\n%s", c.args, want, out)
				}
			}
			dry := exec.CommandContext(t.Context(), filepath.Join(tools, "make"), append([]string{"-n"}, c.args...)...)
			dry.Dir, dry.Env = tree, env
			if plan, err := dry.CombinedOutput(); err != nil || strings.Count(string(plan), "then try again") != len(targets) {
				t.Errorf("make -n %v: %v, and it looks for %d of %d\n%s", c.args, err, strings.Count(string(plan), "then try again"), len(targets), plan)
			}
		})
	}
}

// A database of vulnerabilities that cannot be reached fails, unless the caller says that it is to go on without.
func TestVulnerabilitiesNotLookedFor(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("make")
	if err != nil {
		t.Skip("make is not installed")
	}
	tools := t.TempDir()
	for name, script := range map[string]string{"curl": "echo no route >&2; exit 7", "govulncheck": "echo asked"} {
		if err := os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args  []string
		fails bool
		says  string
	}{
		"as it is":  {nil, true, "pass LINT_OFFLINE=1"},
		"without":   {[]string{"LINT_OFFLINE=1"}, false, "not looked for"},
		"not a one": {[]string{"LINT_OFFLINE=0"}, true, "pass LINT_OFFLINE=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program, append([]string{"--silent", "-C", "../..", "vulnerabilities", "GOVULN=" + filepath.Join(tools, "govulncheck"), "VULNDB=https://vuln.example"}, c.args...)...)
			cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "LINT_OFFLINE=", "MAKEFLAGS=", "MAKELEVEL=")
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(out), c.says) || !strings.Contains(string(out), "https://vuln.example cannot be reached") || strings.Contains(string(out), "asked") {
				t.Errorf("%v, want a failure: %v\n%s", err, c.fails, out)
			}
		})
	}
}
