package doctor

import (
	"strings"
	"testing"

	"github.com/almanac-events/almanac/alerts"
)

func TestRuled(t *testing.T) {
	t.Parallel()
	good, bad := alerts.RuleStatus{Rule: alerts.Rule{Alert: "Good"}}, alerts.RuleStatus{Rule: alerts.Rule{Alert: "Bad"}, Wrong: "no sink runs"}
	group := func(name string, rules ...alerts.RuleStatus) alerts.GroupStatus {
		return alerts.GroupStatus{Group: alerts.Group{Name: name}, Rules: rules}
	}
	for name, c := range map[string]struct {
		groups        []alerts.GroupStatus
		status, found string
	}{
		"all are evaluated": {[]alerts.GroupStatus{group("a", good, good), group("b", good)}, OK, "3 rules of 2 groups are evaluated"},
		"one is not":        {[]alerts.GroupStatus{group("a", good), group("b", good, bad)}, Warn, `1 of 3 rules are not evaluated; group "b", rule "Bad": no sink runs`},
		"none is":           {[]alerts.GroupStatus{group("a", bad, bad)}, Warn, `2 of 2 rules are not evaluated; group "a", rule "Bad"`},
	} {
		t.Run(name, func(t *testing.T) {
			status, do, found := ruled(c.groups)
			if status != c.status || !strings.Contains(found, c.found) || (do == "") != (c.status == OK) {
				t.Errorf("%s, %q: %s", status, do, found)
			}
		})
	}
}
