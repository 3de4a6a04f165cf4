package access

import "context"

type principalKey struct{}

// With returns a context of what a principal asks for.
func With(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// From returns who asks. Where no principal was set it is one that may do nothing: what forgets to
// find out who asks refuses.
func From(ctx context.Context) *Principal {
	if p, ok := ctx.Value(principalKey{}).(*Principal); ok {
		return p
	}
	return &Principal{}
}

// Trail is the process itself where it records what is done. The topics that it records in take nothing of others.
var Trail = &Principal{Name: "almanac", Free: []Action{Send}}

// Almanac is the process itself: what it stores of its own accord, and what comes by protocols that have no accounts.
var Almanac = &Principal{Name: "almanac", Free: []Action{Send, Change, Read, Save, SQL, Operate, Admin, Metrics}}
