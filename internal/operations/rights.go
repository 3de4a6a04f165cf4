package operations

import (
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/access"
)

// Right is what a request needs. Its zero value is open to all: a test names the few that are.
type Right struct {
	Action access.Action
	// Of says of which topics the right must be.
	Of Scope
}

// Scope says which topics a right must be of.
type Scope int

const (
	// OfNamed is the topic of the path, or those that the parameter topic names; all, where it names none.
	OfNamed Scope = iota
	// OfAll topics: what the request is about is known only once it is under way.
	OfAll
	// OfSome: some topic. The operation itself asks for those of its body, leaves out what may not be seen, or answers that there is
	// nothing of an id whose topic is another.
	OfSome
)

// Needs says a right in words: the roles that have it, and of which topics.
func (r Right) Needs() string {
	if r.Action == access.Open {
		return "Open to all"
	}
	var roles []string
	for _, role := range access.RolesFor(r.Action) {
		roles = append(roles, "`"+string(role)+"`")
	}
	of := "of the topic"
	switch {
	case r.Of == OfSome:
		of = "of a topic"
	case r.Of == OfAll && len(roles) > 0:
		of = "of all topics"
	}
	out := "Needs the role " + strings.Join(roles, " or ") + " " + of
	if slices.Contains(access.OnLoopback, r.Action) {
		out += "; on loopback of `up`, no token"
	}
	return out
}

// DefaultTopic is the topic of a request that names none, where the parameter has one; empty: it is of all.
func (o *Operation) DefaultTopic() string {
	if p := o.Param("topic"); p != nil {
		return p.Default
	}
	return ""
}
