package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMakeInstall: make install puts these files below DESTDIR and PREFIX and nothing else, readable by all, and the unit starts what was put there.
// The binary is one that only says what it was asked for.
func TestMakeInstall(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	tree := t.TempDir()
	write := func(name string, mode os.FileMode, text []byte) {
		t.Helper()
		at := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, text, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"Makefile", "deploy/systemd/almanac.service"} {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		write(name, 0o600, text)
	}
	write("bin/almanac", 0o700, []byte(`#!/bin/sh
case $1 in
completion) echo "completion for $2";;
man) echo "a page" > "$2/almanac.1";;
*) exit 2;;
esac
`))
	for name, c := range map[string]struct {
		args   []string
		at     string // below DESTDIR
		engine bool   // whether there is one to install
	}{
		"the default prefix": {nil, "usr/local", true},
		"of a package":       {[]string{"PREFIX=/usr"}, "usr", true},
		"a prefix elsewhere": {[]string{"PREFIX=/opt/almanac-1"}, "opt/almanac-1", true},
		"without an engine":  {nil, "usr/local", false},
	} {
		t.Run(name, func(t *testing.T) {
			library := "node_modules/@chdb/lib-linux-x64-gnu/libchdb.so"
			if c.engine {
				write(library, 0o600, []byte("an engine"))
			} else if err := os.RemoveAll(filepath.Join(tree, library)); err != nil {
				t.Fatal(err)
			}
			dest := filepath.Join(t.TempDir(), "dest dir")
			run := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `umask 022; exec make "$@"`, "make", "-C", tree, "-o", "build", "install", "DESTDIR=" + dest}, c.args...)...)
			run.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "MAKE") || strings.HasPrefix(e, "MFLAGS") }) // this test may run below make
			said, err := run.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			if strings.Contains(name, "without") != strings.Contains(string(said), "no engine is installed") {
				t.Errorf("of the engine make says %q", said)
			}
			var got []string
			err = filepath.WalkDir(dest, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				info, err := d.Info()
				name, rel := filepath.Rel(dest, path)
				got = append(got, fmt.Sprintf("%o %s", info.Mode().Perm()&0o555, filepath.ToSlash(name)))
				if err == nil {
					err = rel
				}
				return err
			})
			want := []string{
				"444 " + c.at + "/lib/systemd/system/almanac.service", "444 " + c.at + "/share/bash-completion/completions/almanac",
				"444 " + c.at + "/share/fish/vendor_completions.d/almanac.fish", "444 " + c.at + "/share/man/man1/almanac.1",
				"444 " + c.at + "/share/zsh/site-functions/_almanac", "555 " + c.at + "/bin/almanac",
			}
			if c.engine {
				want = append(want, "444 "+c.at+"/lib/almanac/libchdb.so") // where the binary looks: internal/embedded
			}
			slices.Sort(got)
			slices.Sort(want)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%v; installed are\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			unit, err := os.ReadFile(filepath.Join(dest, c.at, "lib/systemd/system/almanac.service"))
			if err != nil || !strings.Contains(string(unit), "\nExecStart=/"+c.at+"/bin/almanac up\n") || c.at != "usr/local" && strings.Contains(string(unit), "/usr/local/") {
				t.Errorf("%v; the unit is\n%s", err, unit)
			}
			for _, shell := range []string{"bash-completion/completions/almanac bash", "zsh/site-functions/_almanac zsh", "fish/vendor_completions.d/almanac.fish fish"} {
				file, name, _ := strings.Cut(shell, " ")
				if text, err := os.ReadFile(filepath.Join(dest, c.at, "share", file)); err != nil || string(text) != "completion for "+name+"\n" {
					t.Errorf("%s: %q, %v", file, text, err)
				}
			}
		})
	}
}
