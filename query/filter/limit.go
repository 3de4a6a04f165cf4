package filter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// ErrLimit is a row limit that cannot be applied to a topic: nothing of it may be read then. The text of a limit is in no
// error, for it holds values.
var ErrLimit = errors.New("the row limit of this token cannot be applied")

type limitKey struct{}

// WithLimit returns a context whose reads are of those rows alone that fulfil a filter, beside their own. An empty one
// changes nothing.
func WithLimit(ctx context.Context, where string) context.Context {
	if where == "" {
		return ctx
	}
	return context.WithValue(ctx, limitKey{}, where)
}

// LimitOf returns the filter of WithLimit; empty: there is no limit.
func LimitOf(ctx context.Context) string {
	where, _ := ctx.Value(limitKey{}).(string)
	return where
}

// ParseWithin reads a filter as ParseAt does, and the row limit of the context with it. asked is what the caller wrote,
// and whole selects what both do: rows are read by that alone.
func ParseWithin(ctx context.Context, src string, t *schemas.Topic, now time.Time) (asked, whole *Expr, err error) {
	if asked, err = ParseAt(src, t, now); err != nil {
		return nil, nil, err
	}
	limit := LimitOf(ctx)
	if limit == "" {
		return asked, asked, nil
	}
	within, err := ParseLimit(limit, t)
	if err != nil {
		return nil, nil, err
	}
	return asked, And(within, asked), nil
}

// And selects what both filters do.
func And(a, b *Expr) *Expr {
	switch {
	case a.All():
		return b
	case b.All():
		return a
	}
	return &Expr{root: logical{kids: []node{a.root, b.root}}}
}

// ParseLimit reads a row limit for a topic. It is made of = and IN, with AND and OR, and of values that no event has which
// lacks the field: so an event is never within it for what it does not say. An attribute that the topic promotes means its
// column.
func ParseLimit(where string, t *schemas.Topic) (*Expr, error) {
	tree, err := parseText(where)
	if err != nil {
		return nil, limitError(err)
	}
	c := &compiler{src: where, fields: fieldsOf(t), limit: true}
	root, err := c.or(tree)
	if err != nil {
		return nil, limitError(err)
	}
	if !tells(root) {
		return nil, fmt.Errorf("%w: it is made of = and IN with values that are not empty, and of AND and OR", ErrLimit)
	}
	return &Expr{root: root}, nil
}

// limitError says what kind of error it is, and no word of the limit.
func limitError(err error) error {
	if at := (*Error)(nil); errors.As(err, &at) {
		return fmt.Errorf("%w: %w at column %d of it", ErrLimit, at.Kind, at.Column)
	}
	return ErrLimit
}

// CheckLimit reports what is wrong with a row limit, as far as it can be told without a topic: which promoted fields there
// are is not known.
func CheckLimit(where string) error {
	_, err := ParseLimit(where, nil)
	if errors.Is(err, ErrUnknownField) {
		return nil
	}
	return err
}

// tells reports whether a filter matches only events that have one of its values.
func tells(n node) bool {
	switch n := n.(type) {
	case logical:
		return !slices.ContainsFunc(n.kids, func(k node) bool { return !tells(k) })
	case compare:
		return (n.op == opEq || n.op == opIn) && !slices.ContainsFunc(n.values, func(v value) bool { return !says(n.field, v) })
	}
	return false
}

// says reports whether a value of a field is none that an event has which lacks the field.
func says(f field, v value) bool {
	if f.promoted != nil && f.promoted.Type == schemas.TypeJSON {
		return false
	}
	switch f.typ {
	case typeText, typeAttr:
		return v.param != ""
	case typeInt:
		return v.param != "0"
	}
	return false
}
