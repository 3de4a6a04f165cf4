package request

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/internal/access"
)

// What goes on ends within two seconds of when its token is removed or narrowed, and says why. Without a token it goes on.
func TestWhileAllowed(t *testing.T) {
	t.Parallel()
	read := access.Grant{Role: access.RoleRead, Topics: []string{"app"}}
	may := func(p *access.Principal) error { return p.May(access.Read, "app") }
	for name, c := range map[string]struct {
		then *access.Principal // after five seconds
		err  error
		ends bool
	}{
		"removed":  {nil, access.ErrUnauthenticated, true},
		"narrowed": {&access.Principal{Name: "a", Grants: []access.Grant{{Role: access.RoleRead, Topics: []string{"other"}}}}, nil, true},
		"the same": {&access.Principal{Name: "a", Grants: []access.Grant{read}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				who := &access.Principal{Name: "a", Grants: []access.Grant{read}}
				who.Now = func() (*access.Principal, error) {
					if time.Since(began) < 5*time.Second {
						return who, nil
					}
					return c.then, c.err
				}
				ctx, stop := WhileAllowed(access.With(t.Context(), who), may)
				defer stop()
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				took := time.Since(began)
				if c.ends != (took <= 7*time.Second) || c.ends != (Lost(ctx) != nil) {
					t.Errorf("it ended after %s: %v", took, context.Cause(ctx))
				}
				if c.err != nil && !errors.Is(Lost(ctx), c.err) {
					t.Errorf("%v", Lost(ctx))
				}
			})
		})
	}
	ctx, stop := WhileAllowed(access.With(t.Context(), access.Anonymous(true)), may)
	stop()
	if ctx.Err() != nil {
		t.Error("without a token it ended")
	}
}
