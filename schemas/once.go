package schemas

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// validateOnce reports what is wrong with once_by.
func (t *Topic) validateOnce() error {
	if s := t.Spec(); len(t.OnceBy) > 0 && len(s.Once) > 0 {
		return fmt.Errorf("once_by cannot be given: in kind %s events are the same by %s", t.Kind, strings.Join(s.Once, ", "))
	}
	if len(t.OnceBy) > 0 && t.Front() != "" {
		return fmt.Errorf("once_by cannot be given: the events of kind %s come once", t.Kind)
	}
	if len(t.Once()) > 0 && t.field(ColIdentity) >= 0 {
		return fmt.Errorf("field name %q is a column of every table whose events are counted once", ColIdentity)
	}
	for i, name := range t.OnceBy {
		switch base := slices.Contains(onceColumns, name); {
		case !base && t.field(name) < 0:
			return fmt.Errorf("once_by names %q, which is not a column: it must be a promoted field or one of %s", name, strings.Join(onceColumns, ", "))
		case slices.Contains(t.OnceBy[:i], name):
			return fmt.Errorf("once_by names %q twice", name)
		}
	}
	return t.validateLaneKey()
}

// onceColumns are the base columns that once_by may name.
var onceColumns = []string{ColTs, ColID, ColLevel, ColService, ColType, ColUserID, ColTraceID, ColSpanID, ColMessage}

// checkOnceWithin reports what is wrong with once_within.
func (t *Topic) checkOnceWithin() error {
	switch {
	case t.OnceWithin == 0:
		return nil
	case !t.HasOnce():
		return fmt.Errorf("once_within is given, and events of the topic are never the same one: give once_by too")
	case t.Spec().Wins == kinds.Last:
		return fmt.Errorf("once_within cannot be given: of equal events of kind %s the last counts, whenever it comes", t.Kind)
	case t.OnceWithin%time.Second != 0:
		return fmt.Errorf("once_within is %s, it must be whole seconds", t.OnceWithin)
	}
	return between("once_within", t.OnceWithin, time.Minute, MaxKeepDays*24*time.Hour)
}
