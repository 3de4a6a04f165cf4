package access_test

import (
	"slices"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/schemas"
)

// rightsOf are those that a server with Almanac's configuration gives a user.
func rightsOf(u *access.NATSUser) *access.NATSRights {
	allow, deny := u.Subscribes()
	r := &access.NATSRights{
		Publish:   &access.NATSSubjects{Allow: slices.Clone(u.Publish), Deny: slices.Clone(u.Deny)},
		Subscribe: &access.NATSSubjects{Allow: allow, Deny: deny},
	}
	if u.Answers {
		r.Responses = &access.NATSResponses{Max: 1}
	}
	return r
}

// Each right of each user that is taken away is named, and no other; with all of them nothing is.
func TestLackedRightsAreNamed(t *testing.T) {
	t.Parallel()
	for _, u := range access.NATSUsers() {
		is := func(what string, have *access.NATSRights, want ...string) {
			t.Helper()
			if got := u.Lacks(have); !slices.Equal(got, want) {
				t.Errorf("%s %s: lacks %q, want %q", u.Name, what, got, want)
			}
		}
		is("of a server without users", nil)
		is("with all", rightsOf(&u))
		for i, f := range u.Publish {
			have := rightsOf(&u)
			if have.Publish.Allow = slices.Delete(have.Publish.Allow, i, i+1); slices.Contains(have.Publish.Allow, f) || len(have.Publish.Allow) == 0 {
				continue // it has it twice; or it has no list, which NATS takes for everything
			}
			if slices.ContainsFunc(have.Publish.Allow, func(other string) bool { return schemas.CoversSubjects(other, f) }) {
				is("without "+f+", which another covers", have)
			} else {
				is("without "+f, have, `publish allow "`+f+`"`)
			}
			if f != ">" {
				have.Publish.Allow = append(have.Publish.Allow, ">")
				is("with everything", have)
			}
			have = rightsOf(&u)
			have.Publish.Deny = append(have.Publish.Deny, f)
			is("denied "+f, have, `publish without deny "`+f+`"`)
		}
		for _, f := range u.Hears {
			have := rightsOf(&u)
			have.Subscribe.Allow = slices.DeleteFunc(have.Subscribe.Allow, func(s string) bool { return s == f })
			is("deaf to "+f, have, `subscribe allow "`+f+`"`)
		}
		have := rightsOf(&u)
		have.Responses = nil
		if u.Answers {
			is("that may not answer", have, "allow_responses: true")
		}
	}
}
