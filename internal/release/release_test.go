package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestArchive: the same files in any order give the same bytes, and nothing of this machine is in them.
func TestArchive(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 5, time.UTC)
	files := []file{{"b/x", 0o644, []byte("two")}, {"almanac", 0o755, []byte("one")}}
	var first, second bytes.Buffer
	if err := archive(&first, "almanac_1", at, files); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	if err := archive(&second, "almanac_1", at, files); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of the same files differ")
	}
	zip, err := gzip.NewReader(&first)
	if err != nil {
		t.Fatal(err)
	}
	if zip.Name != "" || !zip.ModTime.IsZero() {
		t.Errorf("gzip's header says %q, %v", zip.Name, zip.ModTime)
	}
	var got []string
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o %d:%d%s%s %s %s", h.Name, h.Mode, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime.UTC().Format(time.RFC3339Nano), data))
	}
	want := []string{"almanac_1/almanac 755 0:0 2026-11-26T12:00:00Z one", "almanac_1/b/x 644 0:0 2026-11-26T12:00:00Z two"}
	if !slices.Equal(got, want) {
		t.Errorf("archive has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestParseTargets(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"two, with spaces", "linux/amd64, darwin/arm64", "[linux/amd64 darwin/arm64]"},
		{"without an architecture", "linux", "[]"},
		{"an empty one at the end", "linux/amd64,", "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := parseTargets(c.text); fmt.Sprint(got) != c.want || (err == nil) != (c.want != "[]") {
				t.Errorf("%v, %v, want %s", got, err, c.want)
			}
		})
	}
}

// TestLicences: each module of the binary has a licence, of whatever name; one without is refused by its path.
func TestLicences(t *testing.T) {
	all, err := readLicences(t.Context(), target{"linux", "arm64"})
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"go", "github.com/nats-io/nats-server/v2", "github.com/alecthomas/participle/v2", "github.com/almanac-events/almanac"} {
		if !slices.ContainsFunc(all, func(f file) bool { return filepath.Dir(f.name) == "licences/"+module && len(f.data) > 500 }) {
			t.Errorf("no licence of %s", module)
		}
	}
	bare := t.TempDir()
	if err := os.WriteFile(filepath.Join(bare, "licensed.go"), []byte("package x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := licencesIn(bare); err == nil || !strings.Contains(err.Error(), bare) {
		t.Errorf("a module without a licence: %v", err)
	}
}

func TestSums(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.tar.gz"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeSums(dir, "abc"); err != nil {
		t.Fatal(err)
	}
	if program, err := exec.LookPath("sha256sum"); err == nil {
		check := exec.CommandContext(t.Context(), program, "--strict", "-c", "SHA256SUMS")
		check.Dir = dir
		if said, err := check.CombinedOutput(); err != nil || string(said) != "a.tar.gz: OK\n" {
			t.Errorf("sha256sum: %v\n%s", err, said)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if want := fmt.Sprintf("# the page inside: abc\n%x  a.tar.gz\n", sha256.Sum256([]byte("text"))); err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// TestPage: a release without the page is refused, by what to run, before anything is built; its digest tells of each file and of its name.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("placeholder.html", "no page")
	if _, err := pageDigest(dir); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "make console") {
		t.Errorf("without a page: %v", err)
	}
	seen := map[string]string{}
	for _, c := range []struct{ name, text string }{{"index.html", "one"}, {"app.js", "one"}, {"app.js", "two"}, {"part.js", "two"}} {
		write(c.name, c.text)
		digest, err := pageDigest(dir)
		if again, _ := pageDigest(dir); err != nil || again != digest {
			t.Fatalf("%s, %s, %v", digest, again, err)
		}
		if of, ok := seen[digest]; ok {
			t.Errorf("the page with %s %q has the digest of that with %s", c.name, c.text, of)
		}
		seen[digest] = c.name + " " + c.text
	}
	t.Chdir(t.TempDir())
	out := filepath.Join(dir, "dist")
	repository(t)
	if err := release(t.Context(), options{version: "v1.2.3", out: out, targets: []target{{"linux", "amd64"}}, dirty: true}); err == nil || !strings.Contains(err.Error(), "make console") {
		t.Errorf("a release of a tree without the page: %v", err)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", out, err)
	}
}

// repository makes the working directory one of git, with a commit.
func repository(t *testing.T) {
	t.Helper()
	for _, args := range []string{"init -q", "-c user.name=x -c user.email=x@example.com commit -q --allow-empty -m x"} {
		if err := run(t.Context(), nil, "git", strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReleaseTwice builds a whole release twice and compares every byte. It compiles the program for each system, so it
// runs where ALMANAC_RELEASE names them, as make release-check does.
func TestReleaseTwice(t *testing.T) {
	systems := os.Getenv("ALMANAC_RELEASE")
	if systems == "" {
		t.Skip("takes minutes; ALMANAC_RELEASE=linux/amd64,… runs it")
	}
	t.Chdir("../..")
	targets, err := parseTargets(systems)
	if err != nil {
		t.Fatal(err)
	}
	var sums [2]string
	for i := range sums {
		out := filepath.Join(t.TempDir(), "dist")
		// A cache of its own: the second build must not be the first's.
		t.Setenv("GOCACHE", t.TempDir())
		if err := release(context.Background(), options{version: "v1.2.3", out: out, targets: targets, sbom: true, dirty: true}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = string(text)
	}
	if n := strings.Count(sums[0], "\n"); n != 2*len(targets)+1 || sums[0] != sums[1] {
		t.Errorf("%d lines, want %d; first:\n%ssecond:\n%s", n, 2*len(targets)+1, sums[0], sums[1])
	}
	t.Log("\n" + sums[0])
}
