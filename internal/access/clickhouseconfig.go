package access

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

// ClickHousePasswordKey is the variable of the environment that ClickHouseConfig takes an account's password from.
func ClickHousePasswordKey(user string) string {
	return "ALMANAC_CLICKHOUSE_" + strings.ToUpper(user) + "_PASSWORD"
}

// ClickHouseAccounts says for which server the accounts are written down.
type ClickHouseAccounts struct {
	// Databases that the accounts are for; the name of a later one may end in a star.
	Databases []string
	// Networks that clients may come from.
	Networks []string
	// Password is the element of an account's password.
	Password func(user string) string
	// More are accounts beside those of the table (SQLAccounts).
	More []ClickHouseUser
	// StatementBytes bounds one statement of the reader, ReaderBytes all of them together, and Threads one.
	StatementBytes, ReaderBytes int64
	Threads                     int
}

//go:embed clickhouseusers.xml.tmpl
var clickHouseTemplate string

// Elements are the accounts and their profiles as elements of a ClickHouse server's configuration.
func (a *ClickHouseAccounts) Elements() (users, profiles string) {
	t := template.Must(template.New("").Funcs(template.FuncMap{"password": a.Password}).Parse(clickHouseTemplate))
	data := struct {
		*ClickHouseAccounts
		Users []*ClickHouseUser
	}{ClickHouseAccounts: a}
	all := append(ClickHouseUsers(), a.More...)
	for i := range all {
		data.Users = append(data.Users, &all[i])
	}
	return executed(t, "users", data), executed(t, "profiles", data)
}

// executed is the text of a template that does not depend on what is outside of this package.
func executed(t *template.Template, name string, data any) string {
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		panic("access: " + err.Error())
	}
	return b.String()
}

// What the reader may take of a server elsewhere, of which nothing is known. docs/limits.md has the reasons.
const (
	elsewhereStatementBytes = 1 << 30
	elsewhereReaderBytes    = 2 << 30
	elsewhereThreads        = 8
)

// ClickHouseConfig is a file for the directory users.d of a ClickHouse server: the accounts of Almanac in a database. Their
// passwords are in the server's environment.
// Those in more, which ask SQL of some topics, have theirs by the reader's.
func ClickHouseConfig(database, reader string, more []ClickHouseUser) string {
	a := ClickHouseAccounts{
		Databases: []string{database}, Networks: []string{"::/0"}, More: more,
		Password: func(user string) string {
			if strings.HasPrefix(user, sqlAccountPrefix) {
				return fmt.Sprintf("<password_sha256_hex>%x</password_sha256_hex>", sha256.Sum256([]byte(SQLPassword(reader, user))))
			}
			return `<password from_env="` + ClickHousePasswordKey(user) + `"/>`
		},
		StatementBytes: elsewhereStatementBytes, ReaderBytes: elsewhereReaderBytes, Threads: elsewhereThreads,
	}
	users, profiles := a.Elements()
	return "<!-- The accounts of Almanac, as `almanac config clickhouse` writes them: a file for users.d. The server takes each password\n" +
		"     from its environment: " + ClickHousePasswordKey(UserSink) + " is the sink's. -->\n" +
		"<clickhouse>\n  <users>\n" + users + "  </users>\n  <profiles>\n" + profiles + "  </profiles>\n</clickhouse>\n"
}
