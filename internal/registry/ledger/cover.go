package ledger

import (
	"fmt"
	"maps"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// Cover is the erasures that concern some frames: those of one message of EVENTS
// or of several that the same erasures mean.
type Cover []Erasure

// Keep is the condition that holds for the events no erasure of the cover means,
// "1" for an empty cover, and its parameters, all of whose names begin with "e".
func (c Cover) Keep() (cond string, params map[string]string) {
	if cond, params = c.Means("e"); cond == "0" {
		return "1", nil
	}
	return "NOT " + cond, params
}

// Means is the condition that holds for the events that any erasure of the cover means, "0" for
// none, and its parameters, all of whose names begin with prefix and a number. Erasures that differ
// by their users alone are one condition with one list.
func (c Cover) Means(prefix string) (cond string, params map[string]string) {
	joined := c.joined()
	if len(joined) == 0 {
		return "0", nil
	}
	params = map[string]string{}
	conds := make([]string, len(joined))
	for i := range joined {
		match, more := joined[i].Match(fmt.Sprintf("%s%d", prefix, i))
		maps.Copy(params, more)
		conds[i] = match
	}
	return AnyOf(conds), params
}

// Weight is what a statement that heeds the cover carries: so many bytes of conditions and
// parameters, and so many comparisons. A list of users is one, however long, and so are all
// lists of erasures that name users alone, of the same time.
func (c Cover) Weight() (bytes, terms int) {
	joined := c.joined()
	for i := range joined {
		bytes += len(joined[i].Cond)
		terms += 1 + len(joined[i].Params)
		for _, v := range joined[i].Params {
			bytes += len(v)
		}
	}
	return bytes, terms
}

// joined is a cover that means the same in fewer erasures, of which only what Match reads is
// there: without those that were redacted, which mean nothing any more, and with one for all
// that name users alone, of the same time.
func (c Cover) joined() Cover {
	type span struct{ from, to int64 }
	var out Cover
	of := map[span]int{}
	lists := map[int]*strings.Builder{}
	for i := range c {
		e := &c[i]
		users, ok := e.usersAlone()
		at, again := of[span{e.From, e.To}]
		switch {
		case e.Redacted:
		case ok && again:
			lists[at].WriteString("," + users)
		case ok:
			at = len(out)
			of[span{e.From, e.To}], lists[at] = at, &strings.Builder{}
			lists[at].WriteString(users)
			fallthrough
		default:
			out = append(out, *e)
		}
	}
	for i, l := range lists {
		out[i].Params = map[string]string{usersParam: "[" + l.String() + "]"}
	}
	return out
}

// usersParam is the parameter of users where there is no other.
const usersParam = "p1"

// OfUsers is the condition of the events of users, which are an array in a parameter, that fulfil
// another.
func OfUsers(param, also string) string {
	return fmt.Sprintf("(`%s` IN {%s:Array(String)}) AND (%s)", schemas.ColUserID, param, also)
}

// usersAlone returns the elements of an erasure's list of users, as the parameter has them, where
// it names nothing else but a time.
func (e *Erasure) usersAlone() (elements string, ok bool) {
	if len(e.Params) != 1 || e.Cond != OfUsers(usersParam, "1") {
		return "", false
	}
	list := e.Params[usersParam]
	if len(list) <= 2 || list[0] != '[' || list[len(list)-1] != ']' {
		return "", false
	}
	return list[1 : len(list)-1], true
}

// AnyOf is a condition that holds where any of some does. What ClickHouse does to understand a row
// of conditions grows with the square of their number and more: a thousand in groups of groups take
// a second, and in a row a minute.
func AnyOf(conds []string) string {
	for len(conds) > 1 {
		var groups []string
		for len(conds) > 0 {
			n := min(len(conds), atOnce)
			groups = append(groups, "toBool("+strings.Join(conds[:n], " OR ")+")")
			conds = conds[n:]
		}
		conds = groups
	}
	return conds[0]
}

// atOnce is how many conditions are one group.
const atOnce = 32

// Schema is the schema version whose columns the conditions use: the highest of
// the cover's.
func (c Cover) Schema() int {
	v := 0
	for i := range c {
		v = max(v, c[i].Schema)
	}
	return v
}
