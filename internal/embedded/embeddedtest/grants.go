package embeddedtest

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded"
)

// Grants has an engine give an account these grants, and no others: statements as GRANT and REVOKE take them, without the name of the
// account. It is what a change of the file of accounts does at a server elsewhere. The engine is one of the test's own (Twin).
func Grants(t testing.TB, engine *embedded.ClickHouse, account string, statements ...string) {
	t.Helper()
	path := filepath.Join(filepath.Dir(engine.LogFile()), "config", "users.xml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var queries bytes.Buffer
	for _, s := range statements {
		queries.WriteString("<query>")
		_ = xml.EscapeText(&queries, []byte(s)) // a buffer does not fail
		queries.WriteString("</query>")
	}
	of := regexp.MustCompile(`(?s)(<` + account + `>.*?<grants>).*?(</grants>)`)
	if !of.Match(text) {
		t.Fatalf("%s has no account %s", path, account)
	}
	text = of.ReplaceAll(text, []byte("${1}"+strings.ReplaceAll(queries.String(), "$", "$$")+"${2}"))
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, engine.HTTPURL(), strings.NewReader("SYSTEM RELOAD USERS"))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(engine.User(), engine.Password())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if said, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("reading the accounts again: %s %s %v", resp.Status, said, err)
	}
}
