package schemas

import "testing"

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
	if got := Nearest("spll", []string{"app", "spill", "spool"}); got != "spill" {
		t.Errorf("the nearest of spll is %q", got)
	}
}
