package schemas

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "abc", 3}, {"ports", "ports", 0}, {"prots", "ports", 1}, {"port", "ports", 1}, {"data", "date", 1}, {"ab", "ba", 1}, {"log_leval", "log_level", 1}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
	for s, want := range map[string]string{
		"spll": "spill", "ap": "app", "oders": "orders", "cusotmers": "customers", "log_levels": "log_level", "ordres": "orders",
		"pr": "", "n": "", "zz": "", "": "", "auth": "", "bills": "", strings.Repeat("a", 200): "",
	} {
		if got := Nearest(s, []string{"app", "s", "spill", "spool", "orders", "customers", "log_level", strings.Repeat("a", 199)}); got != want {
			t.Errorf("the nearest of %s is %q, and not %q", s, got, want)
		}
	}
	if got := Nearest("order1", []string{"order3", "order2"}); got != "order2" {
		t.Errorf("of two that are as near it is %q", got)
	}
}
