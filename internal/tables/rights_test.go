package tables

import (
	"errors"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
)

// The server says which rights an account has, and which not.
func TestAccountHasItsRights(t *testing.T) {
	t.Parallel()
	db, srv := open(t)
	if name, err := db.CurrentUser(t.Context()); err != nil || name != access.UserOperator {
		t.Errorf("the account is %q, %v", name, err)
	}
	for _, name := range []string{access.UserReader, access.UserOperator} {
		user, password := srv.Engine.Account(name)
		for right, want := range map[string]bool{
			"SELECT ON system.parts": true, "SELECT ON system.parts, SELECT ON system.mutations": name == access.UserOperator, "INSERT ON " + srv.Database + ".*": name == access.UserOperator,
		} {
			if has, err := db.HasAs(t.Context(), user, password, right); err != nil || has != want {
				t.Errorf("%s has %s: %t, %v", name, right, has, err)
			}
		}
	}
	if _, err := db.HasAs(t.Context(), access.UserReader, "x", "SELECT ON system.parts"); !errors.Is(err, ErrAccount) {
		t.Errorf("another password: %v", err)
	}
	all := srv.Database + ".*"
	for right, want := range map[string]bool{
		"SELECT ON " + all: true, "ALTER TABLE ON " + all: true, "ALTER DELETE ON " + all: true, "TABLE ENGINE ON MergeTree": true, "SELECT, INSERT ON " + all + ", TABLE ENGINE ON MergeTree": true,
		"DROP DATABASE ON " + all: false, "SELECT ON default.*": false, "TABLE ENGINE ON S3": false, "SELECT ON system.users": false, "CREATE DATABASE ON x_engine_*.*": false,
		"SELECT ON " + all + ", SELECT ON system.users": false, "SELECT, DROP DATABASE ON " + all: false,
	} {
		if has, err := db.Has(t.Context(), right); err != nil || has != want {
			t.Errorf("%s: %t, %v", right, has, err)
		}
	}
}
