package embeddedtest

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
)

// StartOwn gives a test a ClickHouse that no other has, with accounts beside those of access.ClickHouseUsers. Its database is that of
// an `up`, and it ends with the test.
func StartOwn(t testing.TB, more ...access.ClickHouseUser) *Servers {
	t.Helper()
	engine, stop, err := start(nil, more)
	missing(t, err)
	t.Cleanup(stop)
	return &Servers{
		Engine: engine, ClickHouseHTTP: engine.HTTPURL(), ClickHouseTCP: engine.TCPAddr(), DSN: engine.DSN(), ReaderDSN: engine.ReaderDSN(),
		User: engine.User(), Password: engine.Password(), Database: engine.Database(), t: t,
	}
}

// Regrant has an account of the test's own engine (StartOwn) have these grants and no others, statements as GRANT and REVOKE take
// them, and starts the engine again by killing it: it reads its accounts then alone. A server elsewhere reads them while it runs.
func (s *Servers) Regrant(account string, statements ...string) {
	s.t.Helper()
	path := filepath.Join(filepath.Dir(s.Engine.LogFile()), "config", "users.xml")
	text, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	var queries bytes.Buffer
	for _, q := range statements {
		queries.WriteString("<query>")
		_ = xml.EscapeText(&queries, []byte(q)) // a buffer does not fail
		queries.WriteString("</query>")
	}
	at := regexp.MustCompile(`(?s)<` + account + `>.*?<grants>(.*?)</grants>`).FindSubmatchIndex(text)
	if at == nil {
		s.t.Fatalf("%s has no account %s", path, account)
	}
	text = bytes.Join([][]byte{text[:at[2]], queries.Bytes(), text[at[3]:]}, nil)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	before := s.Engine.PID()
	p, err := os.FindProcess(before)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	Eventually(s.t, startTimeout, func() error {
		if now := s.Engine.PID(); now == before || now == 0 {
			return fmt.Errorf("the engine was not started again: %w", embedded.ErrNotRunning)
		}
		return s.Engine.Healthy(s.t.Context())
	})
}
