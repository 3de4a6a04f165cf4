package console

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// sources are what a build of the page reads, beside its packages.
var sources = []string{"src", "build.mjs", "tsconfig.json", "package.json"}

// Two builds of the page, in folders of their own, give the same files with the same bytes: a release can be built again and compared.
func TestTwoBuildsAreTheSame(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("no node here: apt-get install nodejs")
	}
	packages, err := filepath.Abs("web/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(packages, "@esbuild")); err != nil {
		t.Skip("the page's packages are not here: make console")
	}
	first, second := build(t, packages), build(t, packages)
	if len(first) < 10 || len(first) != len(second) {
		t.Errorf("one build has %d files, another %d", len(first), len(second))
	}
	for name, text := range first {
		if second[name] != text {
			t.Errorf("%s differs between two builds of %d and %d bytes", name, len(text), len(second[name]))
		}
	}
}

// build builds the page in a folder of its own, and returns the files by name.
func build(t *testing.T, packages string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	web := filepath.Join(dir, "web")
	for _, name := range sources {
		to := filepath.Join(web, name)
		info, err := os.Stat(filepath.Join("web", name))
		if err == nil && info.IsDir() {
			err = os.CopyFS(to, os.DirFS(filepath.Join("web", name)))
		} else if err == nil {
			var text []byte
			if text, err = os.ReadFile(filepath.Join("web", name)); err == nil {
				err = os.WriteFile(to, text, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(packages, filepath.Join(web, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "build.mjs")
	cmd.Dir = web
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files := map[string]string{}
	dist := os.DirFS(filepath.Join(dir, "dist"))
	err := fs.WalkDir(dist, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(dist, name)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
