package embedded_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
)

// The passwords of a data directory's NATS are made once, for each user another, and those that are missing are added.
func TestNATSPasswords(t *testing.T) {
	t.Parallel()
	d, err := embedded.OpenDataDir(embedded.DataDirConfig{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	first, err := d.NATSPasswords()
	if err != nil {
		t.Fatal(err)
	}
	different := map[string]bool{}
	for _, u := range access.NATSUsers() {
		if len(first[u.Name]) < 26 {
			t.Errorf("%s has %q", u.Name, first[u.Name])
		}
		different[first[u.Name]] = true
	}
	if len(different) != len(access.NATSUsers()) {
		t.Errorf("%d users have %d passwords", len(access.NATSUsers()), len(different))
	}
	if again, err := d.NATSPasswords(); err != nil || !maps.Equal(again, first) {
		t.Errorf("again: %v, %v", again, err)
	}
	path := filepath.Join(d.NATSDir(), "passwords.json")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want mode 0600", info, err)
	}
	writeText(t, path, `{"router":"mine"}`)
	if more, err := d.NATSPasswords(); err != nil || more[access.UserRouter] != "mine" || more[access.UserSink] == "" {
		t.Errorf("a user without one: %v, %v", more, err)
	}
	writeText(t, path, `{`)
	if _, err := d.NATSPasswords(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged file gave %v", err)
	}

	a := embedded.Addresses{NATS: "nats://127.0.0.1:4222"}
	if a.NATSLogin() != a.NATS {
		t.Errorf("without a user: %s", a.NATSLogin())
	}
	if a.NATSUser, a.NATSPassword = "operator", "a/b"; a.NATSLogin() != "nats://operator:a%2Fb@127.0.0.1:4222" {
		t.Errorf("with one: %s", a.NATSLogin())
	}
}
