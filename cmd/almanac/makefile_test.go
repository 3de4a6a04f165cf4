package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// Where the page cannot be built, one that was built before stays while it is of the sources that are there. Else it is removed, and the
// binary says how to build it. What became of it is said.
func TestMakePageWithoutNPM(t *testing.T) {
	t.Parallel()
	tools, broken := t.TempDir(), t.TempDir()
	for _, name := range []string{"make", "bash", "find", "cmp"} {
		at, err := exec.LookPath(name)
		if err != nil {
			t.Skip(name + " is not installed")
		}
		if err := os.Symlink(at, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(broken, "npm"), []byte("#!"+filepath.Join(tools, "bash")+"\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path    string
		page    bool   // one is there
		changed string // a source that is newer
		kept    bool
		says    string
	}{
		"no page":                {says: "no npm here, so the binary will not have the page"},
		"a page of these":        {page: true, kept: true, says: "no npm here; the page that was built before is of these sources, and stays"},
		"another source":         {page: true, changed: "src/main.tsx", says: "it was removed, so the binary will not have the page"},
		"another package":        {page: true, changed: "package-lock.json", says: "it was removed, so the binary will not have the page"},
		"no packages, no page":   {path: broken, says: "npm could not get the page's packages, so the binary will not have the page"},
		"no packages, of these":  {path: broken, page: true, kept: true, says: "npm could not get the page's packages; the page that was built before is of these sources, and stays"},
		"no packages, of others": {path: broken, page: true, changed: "build.mjs", says: "npm could not get the page's packages, and the page that was built before is of older sources: it was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := t.TempDir()
			page := filepath.Join(tree, "internal/gateway/console")
			built := time.Now().Add(-time.Hour)
			write := func(at string, when time.Time) {
				if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(at, when, when); err != nil {
					t.Fatal(err)
				}
			}
			for _, source := range []string{"src/main.tsx", "build.mjs", "tsconfig.json", "package-lock.json"} {
				when := built.Add(-time.Hour)
				if source == c.changed {
					when = built.Add(time.Minute)
				}
				write(filepath.Join(page, "web", source), when)
			}
			write(filepath.Join(page, "dist/placeholder.html"), built)
			if c.page {
				write(filepath.Join(page, "dist/index.html"), built)
				write(filepath.Join(page, "dist/app-1.js"), built)
			}
			if err := os.WriteFile(filepath.Join(tree, "Makefile"), makefile, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(tools, "make"), "--silent", "console")
			cmd.Dir, cmd.Env = tree, []string{"PATH=" + strings.Trim(c.path+":"+tools, ":")}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), c.says) {
				t.Errorf("make console: %v\n%s", err, out)
			}
			left, err := os.ReadDir(filepath.Join(page, "dist"))
			if want := map[bool]int{false: 1, true: 3}[c.kept]; err != nil || len(left) != want {
				t.Errorf("%d files are left, want %d: %v, %v", len(left), want, left, err)
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
