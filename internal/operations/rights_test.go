package operations

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
)

// Whatever a token with a row limit may ask by its role is decided for its rows. What is read by other paths than filters is refused
// to it.
func TestRowsAreDecided(t *testing.T) {
	t.Parallel()
	for _, o := range All {
		asked := slices.ContainsFunc(access.RolesFor(o.Right.Action), func(r access.Role) bool { return slices.Contains(access.Limited, r) })
		if reads := o.Access == Reads && o.Right.Action != access.Operate; (asked || reads) && o.Rows == Undecided {
			t.Errorf("%s %s does not say what a token with a row limit sees of it", o.Method, o.Path)
		}
		if o.Rows == LimitedRows && !asked {
			t.Errorf("%s %s is narrowed to rows, and no token with a row limit may ask it", o.Method, o.Path)
		}
	}
}

// Every operation needs a right. What anyone may ask is listed here, and what changes something is
// free for no client without a secret, but for sending.
func TestRights(t *testing.T) {
	t.Parallel()
	open := []*Operation{&ClickHousePing, &Specification}
	for _, o := range All {
		t.Run(o.Method+" "+o.Path, func(t *testing.T) {
			t.Parallel()
			right := o.Right
			if right.Action == access.Open && !slices.Contains(open, o) {
				t.Error("it is open to all")
			}
			named := strings.Contains(o.Path, "{topic}") || o.Param("topic") != nil
			if right.Of == OfNamed != named && right.Of != OfSome && right.Of != OfAll {
				t.Error("its right is of the topic that it names, and it names none")
			}
			changes := o.Method != http.MethodGet && (o.Access == Writes || o.Access == ReadsAndWrites)
			if changes && right.Action != access.Send && slices.Contains(access.OnLoopback, right.Action) {
				t.Errorf("it changes something, and %s is free on loopback", right.Action)
			}
		})
	}
}
