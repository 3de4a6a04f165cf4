package schemas

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// What topics are made of, as package kinds has it.
type (
	// Kind is what a topic is for.
	Kind = kinds.Kind
	// Field is a promoted field: an attribute that gets a typed column of its own.
	Field = kinds.Field
	// FieldType is the type of a promoted field.
	FieldType = kinds.FieldType
	// Rotation is when a shard is sealed and the next one begins.
	Rotation = kinds.Rotation
)

// The kinds of topics.
const (
	KindLog      = kinds.Log      // append-only events
	KindMeter    = kinds.Meter    // signed changes of a size, each counted once
	KindMetric   = kinds.Metric   // points of time series
	KindAudit    = kinds.Audit    // who changed what
	KindDocument = kinds.Document // versions of documents
	KindTimer    = kinds.Timer    // transitions of timers
)

// The types a promoted field may have. A missing value is the type's zero.
const (
	TypeString         = kinds.TypeString
	TypeLowCardinality = kinds.TypeLowCardinality
	TypeInt64          = kinds.TypeInt64
	TypeFloat64        = kinds.TypeFloat64
	TypeBool           = kinds.TypeBool
	TypeTimestamp      = kinds.TypeTimestamp
	TypeJSON           = kinds.TypeJSON
	TypeDecimal        = kinds.TypeDecimal
)

// FieldTypes lists every type, for messages and help.
var FieldTypes = kinds.FieldTypes

// Default and test-profile rotation.
const (
	DefaultRotateRows  = kinds.DefaultRotateRows
	DefaultRotateBytes = kinds.DefaultRotateBytes
	TestRotateRows     = kinds.TestRotateRows
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

// Once are the columns that make two events the same one: the topic's once_by, or its
// kind's. None: the id does.
func (t *Topic) Once() []string {
	if len(t.OnceBy) > 0 {
		return t.OnceBy
	}
	return t.Spec().Once
}

// Derived are the tables that are filled from the topic's.
func (t *Topic) Derived() []kinds.Derived { return t.Spec().Derived }

// MaxFuture is how far ahead of the clock the time of an event may lie.
func (t *Topic) MaxFuture() time.Duration {
	if d := t.Spec().MaxFuture; d != 0 {
		return d
	}
	return MaxFuture
}

// setKind puts the fields of the kind first, where the declaration lacks them, and fills
// in the kind's defaults.
func (t *Topic) setKind() {
	if t.Kind == "" {
		t.Kind = KindLog
	}
	s := t.Spec()
	if t.Lanes == 0 {
		t.Lanes = t.defaultLanes()
	}
	if t.LaneBy == nil {
		t.LaneBy = t.laneKey()
	}
	if t.Rotate == (Rotation{}) {
		t.Rotate = s.Rotate
	}
	var own []Field
	for _, f := range s.Fields {
		for _, declared := range t.Fields { // the last one has the name that events bring it by
			if declared.Name == f.Name {
				f = declared
			}
		}
		own = append(own, f)
	}
	for _, f := range t.Fields {
		if s.Field(f.Name) == nil {
			own = append(own, f)
		}
	}
	t.Fields = own
}

// defaultLanes is the number of lanes of a topic that does not say.
func (t *Topic) defaultLanes() int { return cmp.Or(t.Spec().Lanes, DefaultLanes) }

// field is the index of a promoted field, -1 when there is none of that name.
func (t *Topic) field(name string) int {
	return slices.IndexFunc(t.Fields, func(f Field) bool { return f.Name == name })
}

// validateKind reports what of the descriptor does not fit its kind.
func (t *Topic) validateKind() error {
	s := t.Kind.Spec()
	if s == nil {
		return fmt.Errorf("%q is not a kind; the kinds are %s", t.Kind, kinds.List())
	}
	for _, f := range t.Fields {
		if s.NoOtherFields && s.Field(f.Name) == nil {
			return fmt.Errorf("field %q cannot be declared: what a topic of kind %s has beside its own columns are labels, which tell series apart", f.Name, t.Kind)
		}
	}
	for _, f := range s.Fields {
		i := t.field(f.Name)
		switch {
		case i < 0:
			return fmt.Errorf("it lacks the field %q, which every topic of kind %s has", f.Name, t.Kind)
		case t.Fields[i].Type != f.Type:
			return fmt.Errorf("field %q is %s, in kind %s it is %s", f.Name, t.Fields[i].Type, t.Kind, f.Type)
		}
	}
	return t.validateOnce()
}

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

// onceColumns are the base columns that once_by may name.
var onceColumns = []string{ColTs, ColID, ColLevel, ColService, ColType, ColUserID, ColTraceID, ColSpanID, ColMessage}

// reservedViews are suffixes of views beside a topic's table. No topic's name ends so.
var reservedViews = []string{viewRecent, ViewOnce, kinds.ViewLatest}

// ViewOnce is the suffix of the view that leaves out repeats.
const ViewOnce = "_once"
