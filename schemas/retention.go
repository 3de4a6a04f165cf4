package schemas

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// neverCleared are the columns that make an event the one it is.
var neverCleared = []string{ColTs, ColID, ColMonth, ColShard, ColPos}

// validateRetention reports what of keep_days and anonymise does not go together.
func (t *Topic) validateRetention() error {
	a := t.Anonymise
	switch {
	case a.AfterDays > 0 && len(a.Fields) == 0:
		return fmt.Errorf("anonymise names no fields to clear after %d days", a.AfterDays)
	case a.AfterDays == 0 && len(a.Fields) > 0:
		return fmt.Errorf("anonymise names the fields %v and no after_days", a.Fields)
	case t.KeepDays > 0 && a.AfterDays >= t.KeepDays:
		return fmt.Errorf("anonymise after_days is %d and keep_days is %d: nothing would ever be anonymised", a.AfterDays, t.KeepDays)
	case t.KeepDays > 0 && t.ColdAfterDays >= t.KeepDays:
		return fmt.Errorf("cold_after_days is %d and keep_days is %d: no shard would ever move", t.ColdAfterDays, t.KeepDays)
	case len(a.Fields) > MaxFields:
		return fmt.Errorf("anonymise names %d fields, the limit is %d", len(a.Fields), MaxFields)
	}
	if column := t.clearsKey(a.Fields); column != "" {
		return fmt.Errorf("anonymise would clear the column %q, which tells events of topic %q apart or sorts its table. Erase such events instead, or hash the field as they come in (pii)", column, t.Name)
	}
	for i, f := range a.Fields {
		key, attribute := strings.CutPrefix(f, ColAttributes+".")
		switch {
		case key == "" || len(key) > MaxAttrKeyBytes:
			return fmt.Errorf("anonymise field %q must have 1 to %d bytes", f, MaxAttrKeyBytes)
		case !attribute && slices.Contains(neverCleared, lowerASCII(f)):
			return fmt.Errorf("anonymise field %q cannot be cleared: it makes the event the one it is", f)
		case !attribute && JSONWords[lowerASCII(f)] == ColTs:
			return fmt.Errorf("anonymise field %q cannot be cleared: it is read as the event's time. Write %s.%s for an attribute of that name", f, ColAttributes, f)
		case slices.Contains(a.Fields[:i], f):
			return fmt.Errorf("anonymise names field %q twice", f)
		}
	}
	return nil
}

// clearsKey is the first column that must keep its values and that clearing the fields
// would change; "" when there is none.
func (t *Topic) clearsKey(fields []string) string {
	c := t.Clearing(fields)
	for _, column := range append(slices.Clone(t.Spec().Sort), t.Once()...) {
		if !slices.Contains(neverCleared, column) && c.empties(column) {
			return column
		}
	}
	return ""
}

// PastKeep says whether every event of a month is older than the topic keeps
// events, as of a moment.
func (t *Topic) PastKeep(m Month, at time.Time) bool {
	return t.KeepDays > 0 && !at.Before(time.Unix(0, m.End()).AddDate(0, 0, t.KeepDays))
}

// CheckKeep refuses what belongs to a month that is wholly past the topic's
// retention at the moment it was stored. A month that is past it in part takes
// late events until its last day is past.
func (t *Topic) CheckKeep(m Month, stored time.Time) error {
	if !t.PastKeep(m, stored) {
		return nil
	}
	return fmt.Errorf("%w: month %s of topic %q ended %s and its events are kept %d days; it came %s",
		ErrPastRetention, m, t.Name, time.Unix(0, m.End()).UTC().Format(time.DateOnly), t.KeepDays, stored.UTC().Format(time.DateOnly))
}

// Tightens says whether events go, or lose fields, earlier or more under next
// than under t.
func (t *Topic) Tightens(next *Topic) bool {
	sooner := func(now, then int) bool { return then > 0 && (now == 0 || then < now) }
	if sooner(t.KeepDays, next.KeepDays) || sooner(t.Anonymise.AfterDays, next.Anonymise.AfterDays) {
		return true
	}
	return slices.ContainsFunc(next.Anonymise.Fields, func(f string) bool { return !slices.Contains(t.Anonymise.Fields, f) })
}

// ShortestDays returns after how many days a topic's frames leave the streams for
// retention; 0: never.
func (t *Topic) ShortestDays() int {
	if t.Anonymise.On() {
		return t.Anonymise.AfterDays // validated to come before KeepDays
	}
	return t.KeepDays
}
