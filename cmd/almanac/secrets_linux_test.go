package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
)

// marked are settings with a secret each, which has the mark in it.
func marked(mark string) map[string]string {
	return map[string]string{
		"pii_key":        mark + "0123456789abcdef",
		"timers_secrets": "a=whsec_" + mark + "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0",
		"token":          "alm_aaaaaa_" + mark + strings.Repeat("A", 26-len(mark)),
		"nats":           "nats://u:" + mark + "@127.0.0.1:1",
		"clickhouse":     "http://u:" + mark + "@127.0.0.1:1/almanac",

		"clickhouse_reader": "reader:" + mark,
	}
}

// Secrets that are given in every way, to servers that do not answer and to those that refuse, are in nothing that is printed.
func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	const mark = "MARKhush"
	all := marked(mark)
	boxes := map[string]func(b *box) []string{
		"environment": func(b *box) []string {
			for name, text := range all {
				b.env = append(b.env, findKey(name).env()+"="+text)
			}
			return nil
		},
		"files": func(b *box) []string {
			for name, text := range all {
				b.env = append(b.env, findKey(name).env()+"_FILE="+b.write(name, text+"\n"))
			}
			return nil
		},
		"settings file": func(b *box) []string {
			var text strings.Builder
			for name, value := range all {
				fmt.Fprintf(&text, "%s: %q\n", name, value)
			}
			b.write("almanac.yaml", text.String())
			return nil
		},
		"flags": func(*box) []string { return []string{"--nats", all["nats"], "--clickhouse", all["clickhouse"]} },
	}
	for name, give := range boxes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			flags := give(b)
			for _, verb := range []string{"config show", "config check", "topics ls", "query app", "sql SELECT(1)", "send app", "verify", "docs ls app"} {
				r := b.run("x\n", append(strings.Fields(verb), flags...)...)
				if strings.Contains(r.out+r.err, mark) {
					t.Errorf("%s:\n%s%s", verb, r.out, r.err)
				}
			}
		})
	}
	broken := map[string]string{"clickhouse_reader": mark, "pii_key": mark, "timers_secrets": mark, "tokens": mark + ": [", "nats": "nats://u:" + mark + "@\x7f", "clickhouse": "clickhouse://u:" + mark + "@x:y:z/\x7f"}
	for name, text := range broken {
		b := newBox(t)
		b.env = append(b.env, findKey(name).env()+"_FILE="+b.write(name, text))
		for _, verb := range []string{"config show", "config check", "topics ls", "query app"} {
			if r := b.run("", strings.Fields(verb)...); strings.Contains(r.out+r.err, mark) {
				t.Errorf("a broken %s, %s:\n%s%s", name, verb, r.out, r.err)
			}
		}
	}
}

// The secrets of an up that runs, and those that it makes, are in its log, its answers, its children's arguments and environment not at all, and on disk only in
// files of mode 0600.
func TestSecretsOfAnUp(t *testing.T) {
	t.Parallel()
	const mark = "MARKhush"
	b := newBox(t)
	for name, text := range marked(mark) {
		if name != "nats" && name != "clickhouse" {
			b.env = append(b.env, findKey(name).env()+"="+text)
		}
	}
	s := b.up()
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	local, err := os.ReadFile(filepath.Join(b.data(), embedded.LocalTokenName))
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{mark, strings.TrimSpace(string(local)), a.Password, a.ReaderPassword}
	finds := func(where string, text []byte) {
		t.Helper()
		for i, secret := range secrets {
			if secret == "" {
				t.Fatalf("secret %d is empty", i)
			}
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("secret %d is in %s", i, where)
			}
		}
	}
	wrong, _ := access.NewSecret()
	secrets = append(secrets, wrong)
	for _, path := range []string{"/metrics", "/version", "/readyz", "/v1/topics", "/v1/nothing", "/v1/topics/app/events"} {
		for _, secret := range []string{wrong, secrets[1], marked(mark)["token"]} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.HTTP+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+secret)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			_, _ = text.ReadFrom(resp.Body)
			_ = resp.Body.Close()
			finds("the answer of "+path, text.Bytes())
		}
	}
	finds("config show", []byte(b.ok("", "config", "show", "-o", "json")))
	finds("the log", []byte(s.stderr()))
	children := 0
	processes, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[string]bool{fmt.Sprint(s.cmd.Process.Pid): true}
	for range 3 { // children, theirs, and theirs
		for _, stat := range processes {
			text, err := os.ReadFile(stat)
			if err != nil {
				continue
			}
			_, rest, _ := strings.Cut(string(text), ") ")
			if f := strings.Fields(rest); len(f) < 2 || !parents[f[1]] {
				continue
			}
			dir := filepath.Dir(stat)
			parents[filepath.Base(dir)] = true
			children++
			for _, name := range []string{"cmdline", "environ"} {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err == nil {
					finds(dir+"/"+name, text)
				}
			}
		}
	}
	if children == 0 {
		t.Error("no child was found")
	}
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	finds("its arguments", cmdline)
	checkSecretFiles(t, b.data(), finds)
}

// checkSecretFiles looks for secrets in the files of a directory that others than their owner may read.
func checkSecretFiles(t *testing.T, dir string, finds func(where string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // files come and go
		}
		info, err := d.Info()
		if err != nil || info.Mode().Perm()&0o077 == 0 || info.Size() > 8<<20 {
			return nil //nolint:nilerr // it is gone, or its owner's alone
		}
		text, err := os.ReadFile(path)
		if err == nil {
			finds(fmt.Sprintf("%s (mode %04o)", path, info.Mode().Perm()), text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
