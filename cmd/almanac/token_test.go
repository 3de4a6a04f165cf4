package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/keep"
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
	if out := b.ok("", "token", "add", "shipper", "--write", "app", "--subject", "CN=shipper,O=Acme", "--events-per-second", "5000", "--bytes-per-second", "1KiB"); out != "" {
		t.Errorf("a token by certificate has a secret: %q", out)
	}
	ended := tokenEnding(t, "ended", time.Now().Add(-time.Hour))
	if err := keep.Change(path, func(all []access.Token) ([]access.Token, error) { return append(all, ended), nil }); err != nil {
		t.Fatal(err)
	}
	if rows := list(); len(rows) != 3 || rows[1].Subject != "CN=shipper,O=Acme" || rows[1].ID != "" || rows[1].EventsASecond != 5000 || rows[1].BytesASecond != 1024 || !rows[2].Ended {
		t.Errorf("%+v", rows)
	}
	for _, cell := range []string{"CN=shipper,O=Acme", "5000 events/s 1024 bytes/s", "(ended)"} {
		if text := b.ok("", "token", "ls"); !strings.Contains(text, cell) {
			t.Errorf("no %q in\n%s", cell, text)
		}
	}
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no role":          {[]string{"add", "x"}, "it has no role"},
		"a name":           {[]string{"add", "A B", "--sql"}, "a name is"},
		"a topic":          {[]string{"add", "x", "--read", "a-b"}, "is not a topic's name"},
		"a network":        {[]string{"add", "x", "--sql", "--from", "10.0.0.1"}, "not a network"},
		"an end":           {[]string{"add", "x", "--sql", "--expires", "soon"}, "not a date"},
		"a name taken":     {[]string{"add", "grafana", "--sql"}, "almanac token rotate grafana"},
		"none to remove":   {[]string{"rm", "other"}, "there is no token"},
		"none to rotate":   {[]string{"rotate", "other"}, "there is no token"},
		"sql twice":        {[]string{"add", "x", "--sql", "--sql-topics", "app"}, "pass one of them"},
		"a wrong limit":    {[]string{"add", "x", "--read", "app", "--where", "level ="}, "--where"},
		"a limit by not":   {[]string{"add", "x", "--read", "app", "--where", "level != 'info'"}, "= and IN"},
		"a limit of all":   {[]string{"add", "x", "--admin", "--where", "level = 'info'"}, "role admin cannot be narrowed"},
		"a wrong overlap":  {[]string{"rotate", "grafana", "--overlap", "x"}, "--overlap"},
		"a past end":       {[]string{"add", "x", "--sql", "--expires", "2020-01-01"}, "is past"},
		"a past new end":   {[]string{"rotate", "grafana", "--expires", "2020-01-01"}, "is past"},
		"no certificate's": {[]string{"add", "x", "--sql", "--subject", "shipper"}, "such as CN=api"},
		"a subject taken":  {[]string{"add", "x", "--sql", "--subject", "CN=shipper,O=Acme"}, "a certificate is of one token"},
		"no secret":        {[]string{"rotate", "shipper"}, "it is who shows a certificate of CN=shipper,O=Acme"},
		"an ended one":     {[]string{"rotate", "ended"}, "pass --expires"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := b.run("", append([]string{"token"}, c.args...)...); r.code != exitUsage || !strings.Contains(r.err, c.says) {
				t.Errorf("code %d: %s", r.code, r.err)
			}
		})
	}
	if rows := list(); len(rows) != 3 {
		t.Errorf("refused calls left %+v", rows)
	}
	b.ok("", "token", "rotate", "ended", "--expires", "90d")
	if rows := list(); len(rows) != 3 || rows[2].Name != "ended" || rows[2].Ended || rows[2].ID == ended.ID {
		t.Errorf("after the rotation of one that had ended: %+v", rows)
	}
	var wg sync.WaitGroup
	for _, name := range []string{"one", "two", "three", "four"} {
		wg.Go(func() { b.run("", "token", "add", name, "--metrics") })
	}
	wg.Wait()
	if rows := list(); len(rows) != 7 {
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

// tokenEnding is one of a role, with an end.
func tokenEnding(t *testing.T, name string, end time.Time) access.Token {
	t.Helper()
	secret, id := access.NewSecret()
	return access.Token{Name: name, ID: id, Digest: access.DigestOf(secret), Grants: []access.Grant{{Role: access.RoleSQL}}, Expires: end.UTC().Truncate(time.Second)}
}

// The ends of both secrets after a rotation: the old one never gets a later end than it had, and the new one is valid.
func TestRotated(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		ends, given    time.Time
		overlap        time.Duration
		oldEnd, newEnd time.Time // a zero oldEnd: the old secret is gone
		refused        bool
	}{
		"no end":                      {newEnd: time.Time{}},
		"no end, with an overlap":     {overlap: day, oldEnd: now.Add(day)},
		"an end after the overlap":    {ends: now.Add(9 * day), overlap: day, oldEnd: now.Add(day), newEnd: now.Add(9 * day)},
		"an end before the overlap's": {ends: now.Add(time.Hour), overlap: day, oldEnd: now.Add(time.Hour), newEnd: now.Add(time.Hour)},
		"a new end":                   {ends: now.Add(time.Hour), given: now.Add(90 * day), overlap: day, oldEnd: now.Add(time.Hour), newEnd: now.Add(90 * day)},
		"ended":                       {ends: now.Add(-time.Second), refused: true},
		"ends now":                    {ends: now, refused: true},
		"ended, with a new end":       {ends: now.Add(-day), given: now.Add(90 * day), overlap: day, oldEnd: now.Add(-day), newEnd: now.Add(90 * day)},
	} {
		t.Run(name, func(t *testing.T) {
			before := tokenEnding(t, "api", now)
			before.Expires = c.ends
			secret, until, all, err := rotated([]access.Token{before}, "api", c.overlap, c.given, now)
			if c.refused {
				if err == nil || !strings.Contains(err.Error(), "--expires") {
					t.Errorf("%v, %v", all, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			next := all[len(all)-1]
			if next.Digest != access.DigestOf(secret) || next.ID == before.ID || !next.Expires.Equal(c.newEnd) {
				t.Errorf("the new one is %+v", next)
			}
			if c.oldEnd.IsZero() != (len(all) == 1) || len(all) == 2 && (all[0].ID != before.ID || !all[0].Expires.Equal(c.oldEnd) || !until.Equal(c.oldEnd)) {
				t.Errorf("the old one, of %d, is %+v, until %s", len(all), all[0], until)
			}
			if _, why, err := access.NewTokens(all).Authenticate(&access.Asked{Secret: secret, At: now}); err != nil {
				t.Errorf("the new secret is refused: %s", why)
			}
		})
	}
}
