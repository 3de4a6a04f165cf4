package ledger

import (
	"fmt"
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
	for _, want := range []string{"NOT toBool((ts >=", "{e0p1:String}", "{e1p2:String}", " OR (ts >="} {
		if !strings.Contains(cond, want) {
			t.Errorf("%s\nlacks %s", cond, want)
		}
	}
}

// ofUsers is an erasure of users alone, who are an array as a parameter has it.
func ofUsers(array string, from int64) Erasure {
	return Erasure{Cond: OfUsers("p1", "1"), Params: map[string]string{"p1": array}, From: from, To: math.MaxInt64}
}

// Erasures that differ by their users alone are one condition with one list; others stay.
func TestKeepJoins(t *testing.T) {
	t.Parallel()
	filtered := ofUsers("['f']", 0)
	filtered.Cond = OfUsers("p1", "`level` = {p2:String}")
	filtered.Params["p2"] = "error"
	front := ofUsers("['d']", 0)
	front.Cond = "`seq` <= 7 AND (" + front.Cond + ")"
	redacted := ofUsers("['gone']", 0)
	redacted.Cond, redacted.Params, redacted.Redacted = "0", nil, true
	for name, c := range map[string]struct {
		cover Cover
		want  []string // lists of users, by parameter
		terms int
	}{
		"of one time":    {Cover{ofUsers("['a','b']", 0), ofUsers("['it\\'s']", 0), ofUsers("['c']", 0)}, []string{"['a','b','it\\'s','c']"}, 2},
		"of two times":   {Cover{ofUsers("['a']", 0), ofUsers("['b']", 5), ofUsers("['c']", 0)}, []string{"['a','c']", "['b']"}, 4},
		"with a filter":  {Cover{filtered, ofUsers("['a']", 0), filtered, ofUsers("['b']", 0)}, []string{"['f']", "['a','b']", "['f']"}, 8},
		"of a front":     {Cover{front, front}, []string{"['d']", "['d']"}, 4},
		"redacted":       {Cover{redacted, ofUsers("['a']", 0)}, []string{"['a']"}, 2},
		"redacted alone": {Cover{redacted}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := fmt.Sprint(c.cover)
			cond, params := c.cover.Keep()
			for i, want := range c.want {
				p := fmt.Sprintf("e%dp1", i)
				if params[p] != want || strings.Count(cond, "{"+p+":Array(String)}") != 1 {
					t.Errorf("%s is %s, want %s, in %s", p, params[p], want, cond)
				}
			}
			if n := strings.Count(cond, "Array(String)"); n != len(c.want) || n == 0 && cond != "1" {
				t.Errorf("%d lists in %s", n, cond)
			}
			if _, terms := c.cover.Weight(); terms != c.terms {
				t.Errorf("%d comparisons, want %d", terms, c.terms)
			}
			if fmt.Sprint(c.cover) != before {
				t.Error("the cover was changed")
			}
		})
	}
}

// However many conditions there are, no list of them is long.
func TestAnyOf(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 32, 33, 1000, 1025, 5000} {
		conds := make([]string, n)
		for i := range conds {
			conds[i] = fmt.Sprintf("c%d", i)
		}
		got := AnyOf(conds)
		for i := range conds {
			if strings.Count(got+" ", fmt.Sprintf("c%d ", i))+strings.Count(got, fmt.Sprintf("c%d)", i)) != 1 {
				t.Fatalf("%d of %d is not there once", i, n)
			}
		}
		// Between two parentheses of one level stand so many ORs at most.
		var ors []int
		for _, r := range strings.NewReplacer(" OR ", "|").Replace(got) {
			switch r {
			case '(':
				ors = append(ors, 0)
			case ')':
				ors = ors[:len(ors)-1]
			case '|':
				if ors[len(ors)-1]++; ors[len(ors)-1] >= atOnce {
					t.Fatalf("a list of more than %d among %d", atOnce, n)
				}
			}
		}
	}
}
