package access_test

import (
	"encoding/xml"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
)

// The file for users.d is XML in which each account has its own password, profile and grants, and no account may do anything by
// default.
func TestClickHouseConfigHasEveryUser(t *testing.T) {
	t.Parallel()
	text := access.ClickHouseConfig("almanac", "", nil)
	var doc struct {
		Users struct {
			All []struct {
				XMLName  xml.Name
				Password struct {
					From string `xml:"from_env,attr"`
				} `xml:"password"`
				Profile string   `xml:"profile"`
				Grants  []string `xml:"grants>query"`
			} `xml:",any"`
		} `xml:"users"`
		Profiles struct {
			All []struct{ XMLName xml.Name } `xml:",any"`
		} `xml:"profiles"`
	}
	if err := xml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	profiles := map[string]bool{}
	for _, p := range doc.Profiles.All {
		profiles[p.XMLName.Local] = true
	}
	users := access.ClickHouseUsers()
	if len(doc.Users.All) != len(users) {
		t.Fatalf("%d accounts, want %d", len(doc.Users.All), len(users))
	}
	for i, got := range doc.Users.All {
		u := &users[i]
		if got.XMLName.Local != u.Name || got.Password.From != access.ClickHousePasswordKey(u.Name) || !profiles[got.Profile] || got.Profile != u.Profile {
			t.Errorf("%s: %+v", u.Name, got)
		}
		if want := strings.Join(u.Statements([]string{"almanac"}), "; "); want == "" || strings.Join(got.Grants, "; ") != want {
			t.Errorf("%s has %v, want %s", u.Name, got.Grants, want)
		}
	}
}

// What Almanac asks the server about itself, it has the right to ask: each table of system that the program names.
func TestClickHouseUsersKnowTheTablesOfTheServer(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"system.one": true}
	operator := access.ClickHouseUsers()[0]
	for _, g := range operator.Grants {
		known[g.On] = true
	}
	named := regexp.MustCompile(`(?:FROM|JOIN|IN) (system\.[a-z_]+)`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if name := filepath.Base(path); d != nil && (name == "node_modules" || name == "bench" || strings.HasPrefix(name, ".") && len(name) > 2) {
				return filepath.SkipDir
			}
			return err
		}
		if strings.HasSuffix(path, "_test.go") || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".sql") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if !known[m[1]] {
				t.Errorf("%s reads %s, which no account may: add it to ClickHouseUsers", path, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// One right is taken away at a time: that one is named, and no other. One who has all is asked for once.
func TestMissingGrantIsNamed(t *testing.T) {
	t.Parallel()
	for _, u := range access.ClickHouseUsers() {
		rights := u.Rights("almanac")
		for _, gone := range append(rights, access.SingleGrant{}) {
			asked, line := 0, gone.String()
			got, err := u.Lacks("almanac", func(rights string) (bool, error) {
				asked++
				return !slices.Contains(strings.Split(rights, ", "), gone.Ask), nil
			})
			var want []string
			if gone.On != "" {
				want = []string{line}
			}
			if err != nil || !slices.Equal(got, want) || gone.On == "" && asked != 1 || asked > 2*len(rights) {
				t.Errorf("%s without %s lacks %v, %v, asked %d times", u.Name, line, got, err, asked)
			}
		}
		if len(rights) == 0 {
			t.Errorf("%s has no rights", u.Name)
		}
	}
	asked := 0
	all, err := access.ClickHouseUserOf(access.UserOperator).Lacks("almanac", func(string) (bool, error) { asked++; return false, nil })
	if err != nil || len(all) != 11 || all[10] != "perhaps more" || asked > 30 {
		t.Errorf("who has nothing lacks %v, %v, asked %d times", all, err, asked)
	}
	reader := access.ClickHouseUserOf(access.UserReader)
	if _, do := reader.Lacking("ann", "almanac", []string{"SELECT ON almanac.*"}); !strings.Contains(do, " and then revoke SELECT ON ") || !strings.Contains(do, " from it, or take the account reader") {
		t.Errorf("a reader who is granted all tables reads what it may not: %s", do)
	}
	if access.ClickHouseUserOf(access.UserSink).Name != access.UserSink || access.ClickHouseUserOf("mallory") != nil {
		t.Error("accounts by their names")
	}
}
