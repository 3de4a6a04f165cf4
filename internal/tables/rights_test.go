package tables

import (
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
	for right, want := range map[[2]string]bool{
		{"SELECT", srv.Database + ".*"}: true, {"ALTER TABLE", srv.Database + ".*"}: true, {"ALTER DELETE", srv.Database + ".*"}: true, {"TABLE ENGINE", "MergeTree"}: true,
		{"DROP DATABASE", srv.Database + ".*"}: false, {"SELECT", "default.*"}: false, {"TABLE ENGINE", "S3"}: false, {"SELECT", "system.users"}: false, {"CREATE DATABASE", "x_engine_*.*"}: false,
	} {
		if has, err := db.Has(t.Context(), right[0], right[1]); err != nil || has != want {
			t.Errorf("%v: %t, %v", right, has, err)
		}
	}
}
