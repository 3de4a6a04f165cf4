package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
)

// Who may ask SQL of all topics does so as the reader, and who may of some by the account of those or not at all.
func TestAccountOfStatements(t *testing.T) {
	t.Parallel()
	some := &access.Principal{Name: "some", Grants: []access.Grant{{Role: access.RoleSQL, Topics: []string{"auth", "app"}}}}
	account := access.SQLAccount([]string{"app", "auth"})
	for name, c := range map[string]struct {
		cfg        Config
		who        *access.Principal
		user, pass string // empty: it is refused
	}{
		"no accounts asked for": {Config{User: "reader", Password: "p", Anyone: true}, some, "reader", "p"},
		"all topics":            {Config{User: "reader", Password: "p", TopicSQL: true}, &access.Principal{Grants: []access.Grant{{Role: access.RoleSQL}}}, "reader", "p"},
		"an admin":              {Config{User: "reader", Password: "p"}, &access.Principal{Grants: []access.Grant{{Role: access.RoleAdmin}}}, "reader", "p"},
		"on loopback":           {Config{User: "reader", Password: "p"}, access.Anonymous(true), "reader", "p"},
		"some topics":           {Config{User: "reader", Password: "p", TopicSQL: true}, some, account.Name, access.SQLPassword("p", account.Name)},
		"some, in the library":  {Config{User: "reader", Password: "p"}, some, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/v1/sql", nil)
			counted, who := 0, *c.who
			who.OnDenied = func(*access.Denied) { counted++ }
			as, err := (&API{cfg: c.cfg}).asksAs(r.WithContext(access.With(r.Context(), &who)))
			if refused := err != nil; refused != (counted == 1) {
				t.Errorf("refused: %v, counted %d times", err, counted)
			}
			if as.user != c.user || as.password != c.pass || (err == nil) != (c.user != "") {
				t.Errorf("%q, %v", as.user, err)
			}
			if missing := as.missing(notAuthenticated); (missing != nil) != (c.user == account.Name) || missing != nil && !strings.Contains(missing.Error(), account.Name) {
				t.Errorf("an account that is not there: %v", missing)
			}
			if err := as.missing(497); err != nil {
				t.Errorf("another error: %v", err)
			}
		})
	}
}
