package ledger

import (
	"fmt"
	"maps"
	"strings"
)

// Cover is the erasures that concern some frames: those of one message of EVENTS
// or of several that the same erasures mean.
type Cover []Erasure

// Keep is the condition that holds for the events no erasure of the cover means,
// "1" for an empty cover, and its parameters, all of whose names begin with "e".
func (c Cover) Keep() (cond string, params map[string]string) {
	if len(c) == 0 {
		return "1", nil
	}
	params = map[string]string{}
	conds := make([]string, len(c))
	for i := range c {
		match, more := c[i].Match(fmt.Sprintf("e%d", i))
		maps.Copy(params, more)
		conds[i] = "NOT " + match
	}
	return strings.Join(conds, " AND "), params
}

// Schema is the schema version whose columns the conditions use: the highest of
// the cover's.
func (c Cover) Schema() int {
	v := 0
	for i := range c {
		v = max(v, c[i].Schema)
	}
	return v
}
