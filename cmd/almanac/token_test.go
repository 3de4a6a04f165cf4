package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
)

// A token is made, listed, given a new secret and removed. Its secret is printed once, and is in no file.
func TestTokens(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	list := func() (rows []tokenRow) {
		t.Helper()
		if err := json.Unmarshal([]byte(b.ok("", "token", "ls", "-o", "json")), &rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if rows := list(); len(rows) != 0 {
		t.Errorf("tokens before the first: %+v", rows)
	}
	first := strings.TrimSpace(b.ok("", "token", "add", "api", "--write", "app,auth", "--expires", "90d", "--from", "10.0.0.0/8", "--bytes-per-second", "10MiB"))
	b.ok("", "token", "add", "grafana", "--read", "*", "--sql")
	rows := list()
	if len(rows) != 2 || rows[0].Name != "api" || strings.Join(rows[0].Roles, " ") != "write:app,auth" || rows[0].Expires == "" || rows[0].From[0] != "10.0.0.0/8" ||
		strings.Join(rows[1].Roles, " ") != "read:* sql" {
		t.Errorf("%+v", rows)
	}
	second := strings.TrimSpace(b.ok("", "token", "rotate", "api", "--overlap", "1h"))
	if rows := list(); len(rows) != 3 || rows[2].Name != "api" || rows[0].ID == rows[2].ID || first == second {
		t.Errorf("after a rotation: %+v", rows)
	}
	path := filepath.Join(b.data(), "tokens.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{first, second} {
		if !strings.HasPrefix(secret, "alm_") || strings.Contains(string(text), secret) {
			t.Errorf("secret %q, and the file is\n%s", secret, text)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	b.ok("", "token", "rm", "api")
	if rows := list(); len(rows) != 1 || rows[0].Name != "grafana" {
		t.Errorf("after a removal: %+v", rows)
	}
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no role":         {[]string{"add", "x"}, "it has no role"},
		"a name":          {[]string{"add", "A B", "--sql"}, "a name is"},
		"a topic":         {[]string{"add", "x", "--read", "a-b"}, "is not a topic's name"},
		"a network":       {[]string{"add", "x", "--sql", "--from", "10.0.0.1"}, "not a network"},
		"an end":          {[]string{"add", "x", "--sql", "--expires", "soon"}, "not a date"},
		"a name taken":    {[]string{"add", "grafana", "--sql"}, "almanac token rotate grafana"},
		"none to remove":  {[]string{"rm", "other"}, "there is no token"},
		"none to rotate":  {[]string{"rotate", "other"}, "there is no token"},
		"sql twice":       {[]string{"add", "x", "--sql", "--sql-topics", "app"}, "pass one of them"},
		"a wrong limit":   {[]string{"add", "x", "--read", "app", "--where", "level ="}, "--where"},
		"a limit by not":  {[]string{"add", "x", "--read", "app", "--where", "level != 'info'"}, "= and IN"},
		"a limit of all":  {[]string{"add", "x", "--admin", "--where", "level = 'info'"}, "role admin cannot be narrowed"},
		"a wrong overlap": {[]string{"rotate", "grafana", "--overlap", "x"}, "--overlap"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := b.run("", append([]string{"token"}, c.args...)...); r.code != exitUsage || !strings.Contains(r.err, c.says) {
				t.Errorf("code %d: %s", r.code, r.err)
			}
		})
	}
	if rows := list(); len(rows) != 1 {
		t.Errorf("refused calls left %+v", rows)
	}
	var wg sync.WaitGroup
	for _, name := range []string{"one", "two", "three", "four"} {
		wg.Go(func() { b.run("", "token", "add", name, "--metrics") })
	}
	wg.Wait()
	if rows := list(); len(rows) != 5 {
		t.Errorf("four made at once: %+v", rows)
	}
	// SQL of some topics takes an account of ClickHouse, whose password is made of the reader's.
	b.ok("", "token", "add", "analyst", "--sql-topics", "auth,app")
	if r := b.run("", "config", "clickhouse"); r.code != exitConfig || !strings.Contains(r.err, "clickhouse_reader is not set") {
		t.Errorf("accounts without a reader: code %d: %s", r.code, r.err)
	}
	b.env = append(b.env, "ALMANAC_CLICKHOUSE_READER=reader:private")
	if text := b.ok("", "config", "clickhouse"); !strings.Contains(text, "<"+access.SQLAccount([]string{"app", "auth"}).Name+">") || strings.Contains(text, "private") {
		t.Errorf("%s", text)
	}
}
