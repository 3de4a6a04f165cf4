package schemas

import (
	"fmt"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// Spec returns the topic's kind. One whose kind names none is treated as a log: Validate
// refuses it.
func (t *Topic) Spec() *kinds.Spec {
	if s := t.Kind.Spec(); s != nil {
		return s
	}
	return KindLog.Spec()
}

// Front is the stream that the topic's lanes are read from when it is not EVENTS; else
// empty. Such a topic takes events from its front alone.
func (t *Topic) Front() string { return t.Spec().Front }

// CheckEvents refuses a topic whose events come from a front: no producer and no JSON
// may bring it any. The error is ErrWrongKind.
func (t *Topic) CheckEvents() error {
	front := t.Front()
	if front == "" {
		return nil
	}
	return fmt.Errorf("%w: topic %q is of kind %s, whose events come from the stream %s alone. Write to it with `almanac %s`", ErrWrongKind, t.Name, t.Kind, front, frontVerbs[t.Kind])
}

// frontVerbs are the verbs that write to fronts.
var frontVerbs = map[Kind]string{kinds.Document: "docs", kinds.Timer: "timers"}

// Derived are the tables that are filled from the topic's.
func (t *Topic) Derived() []kinds.Derived { return t.Spec().Derived }

// MaxFuture is how far ahead of the clock the time of an event may lie.
func (t *Topic) MaxFuture() time.Duration {
	if d := t.Spec().MaxFuture; d != 0 {
		return d
	}
	return MaxFuture
}

// field is the index of a promoted field, -1 when there is none of that name.
func (t *Topic) field(name string) int {
	return slices.IndexFunc(t.Fields, func(f Field) bool { return f.Name == name })
}

// Once are the columns that make two events the same one: the topic's once_by, or its
// kind's. None: the id does.
func (t *Topic) Once() []string {
	if len(t.OnceBy) > 0 {
		return t.OnceBy
	}
	return t.Spec().Once
}
