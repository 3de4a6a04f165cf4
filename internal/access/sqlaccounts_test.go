package access

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// Tokens of the same topics ask by one account, whatever their order; one of other topics by another, and one of all by none.
func TestSQLAccounts(t *testing.T) {
	t.Parallel()
	tokens, err := Parse([]byte(`tokens:
- {name: a, subject: CN=a, sql: [auth, app]}
- {name: b, subject: CN=b, sql: [app, auth, app]}
- {name: c, subject: CN=c, sql: [app]}
- {name: d, subject: CN=d, sql: true}
- {name: e, subject: CN=e, read: [app]}
`))
	if err != nil {
		t.Fatal(err)
	}
	principal := func(i int) *Principal { return &Principal{Grants: tokens[i].Grants} }
	for i, want := range [][]string{{"app", "auth"}, {"app", "auth"}, {"app"}, nil, nil} {
		topics, everything := principal(i).SQLTopics()
		if !slices.Equal(topics, want) || everything != (i == 3) {
			t.Errorf("%s: %v, %v", tokens[i].Name, topics, everything)
		}
		if err := principal(i).MaySome(SQL); (err == nil) != (i < 4) {
			t.Errorf("%s, of some topic: %v", tokens[i].Name, err)
		}
		if err := principal(i).May(SQL, ""); (err == nil) != (i == 3) {
			t.Errorf("%s, of all: %v", tokens[i].Name, err)
		}
	}
	all := SQLAccounts(tokens)
	two, one := SQLAccount([]string{"app", "auth"}), SQLAccount([]string{"app"})
	if len(all) != 2 || !slices.ContainsFunc(all, func(u ClickHouseUser) bool { return u.Name == two.Name }) || !slices.ContainsFunc(all, func(u ClickHouseUser) bool { return u.Name == one.Name }) || one.Name == two.Name {
		t.Errorf("%+v", all)
	}
	for _, s := range one.Statements([]string{"db"}) {
		if !strings.HasPrefix(s, "GRANT SELECT ON db.`app") || !strings.HasSuffix(s, "`") {
			t.Errorf("%s", s)
		}
	}
	text := ClickHouseConfig("db", "the reader's", all)
	for _, u := range all {
		if !strings.Contains(text, "<"+u.Name+">") {
			t.Errorf("%s is not in the file:\n%s", u.Name, text)
		}
		if p := SQLPassword("the reader's", u.Name); p == SQLPassword("another's", u.Name) || strings.Contains(text, p) {
			t.Errorf("the password of %s is in the file, or does not depend on the reader's", u.Name)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
	}
}
