package ledger

import (
	"math"
	"strings"
	"testing"
)

// Conditions of several erasures share a statement: their parameters keep apart.
func TestKeep(t *testing.T) {
	cond, params := Cover{}.Keep()
	if cond != "1" || len(params) != 0 {
		t.Errorf("an empty cover keeps %q", cond)
	}
	one := Erasure{Cond: "`user_id` = {p1:String} AND `attributes`[{p2:String}] = {p3:String}", Params: map[string]string{"p1": "u", "p2": "k", "p3": "{p1}"}, To: math.MaxInt64, Schema: 2}
	c := Cover{one, one}
	cond, params = c.Keep()
	if len(params) != 6 || params["e0p1"] != "u" || params["e1p3"] != "{p1}" || c.Schema() != 2 {
		t.Errorf("parameters %v, schema %d", params, c.Schema())
	}
	for _, want := range []string{"NOT (", "{e0p1:String}", "{e1p2:String}", " AND NOT ("} {
		if !strings.Contains(cond, want) {
			t.Errorf("%s\nlacks %s", cond, want)
		}
	}
}
