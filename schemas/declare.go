package schemas

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// NewTopic is a topic of kind log with every default.
func NewTopic(name string, fields ...Field) Topic { return NewTopicOf(KindLog, name, fields...) }

// NewTopicOf is a topic of a kind with every default, and the fields after the kind's.
func NewTopicOf(kind Kind, name string, fields ...Field) Topic {
	t := Topic{Name: name, Kind: kind, Fields: slices.Clone(fields)}
	t.setDefaults()
	return t
}

// Declared is t as a person declared it, with defaults filled in and checked.
func (t Topic) Declared() (Topic, error) {
	t.Fields = slices.Clone(t.Fields)
	t.setDefaults()
	return t, t.Validate()
}

func (t *Topic) setDefaults() {
	t.setKind()
	t.sortMetrics()
	t.setOptions()
	t.setDocuments()
	if len(t.OnceBy) == 0 {
		t.OnceBy = nil
	}
	if len(t.Anonymise.Fields) == 0 {
		t.Anonymise.Fields = nil // as the registry gives it back
	}
	if t.Version == 0 {
		t.Version = 1
	}
	for i := range t.Fields {
		if t.Fields[i].Since == 0 {
			t.Fields[i].Since = 1
		}
	}
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

// Validate reports the first thing wrong with the descriptor.
func (t *Topic) Validate() error {
	if err := ValidateTopicName(t.Name); err != nil {
		return err
	}
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w %q: %w", ErrTopic, t.Name, fmt.Errorf(format, a...))
	}
	if err := t.validateKind(); err != nil {
		return bad("%w", err)
	}
	if err := t.validateOptions(); err != nil {
		return bad("%w", err)
	}
	if err := t.validateDocuments(); err != nil {
		return bad("%w", err)
	}
	if err := t.validateRetention(); err != nil {
		return bad("%w", err)
	}
	if err := t.validatePrivacy(); err != nil {
		return bad("%w", err)
	}
	if len(t.Fields) > MaxFields {
		return bad("%d promoted fields, the limit is %d", len(t.Fields), MaxFields)
	}
	seen := map[string]bool{}
	for _, f := range t.Fields {
		if !validName(f.Name) {
			return bad("field name %q must match [a-z][a-z0-9_]{0,62}", f.Name)
		}
		if slices.Contains(reservedColumns, f.Name) {
			return bad("field name %q is a column every topic has", f.Name)
		}
		if seen[f.Name] {
			return bad("field %q is declared twice", f.Name)
		}
		seen[f.Name] = true
		if !slices.Contains(FieldTypes, f.Type) {
			return bad("field %q has type %q, it must be one of %v", f.Name, f.Type, FieldTypes)
		}
	}
	if err := t.validateSources(); err != nil {
		return bad("%w", err)
	}
	return nil
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

// Evolve is the live topic t changed to what want declares. Fields may be added and
// options changed; existing fields and frozen options may not, because frames on their
// way were made under them.
func (t Topic) Evolve(want Topic) (Topic, error) {
	no := func(format string, a ...any) (Topic, error) {
		return Topic{}, fmt.Errorf("%w: topic %q: %w", ErrTopicChange, t.Name, fmt.Errorf(format, a...))
	}
	if err := t.frozen(&want); err != nil {
		return no("%w", err)
	}
	next := want // what is neither frozen nor a field may change
	next.Name, next.Version, next.First = t.Name, t.Version, t.First
	next.Fields = slices.Clone(t.Fields)
	var changed bool
	if next.PII, next.Lifted, changed = t.evolveRules(want.PII); changed {
		next.Version = t.Version + 1
	}
	for i := range next.PII {
		if p := &next.PII[i]; changed && p.Since == t.Version+1 && t.movesLanes(p) {
			return no("the privacy rule %s changes what its %d lanes are cut by (%s): an event and a copy of it that is sent later would have two lanes, and count twice; declare another topic with the rule and send to that",
				p, t.Lanes, strings.Join(t.LaneBy, ", "))
		}
	}
	for _, f := range want.Fields {
		i := slices.IndexFunc(t.Fields, func(o Field) bool { return o.Name == f.Name })
		if i >= 0 {
			if t.Fields[i].Type != f.Type {
				return no("field %q is %s and cannot become %s", f.Name, t.Fields[i].Type, f.Type)
			}
			if t.Fields[i].From != f.From {
				return no("field %q is taken from %q and cannot be taken from %q; add another field", f.Name, t.Fields[i].From, f.From)
			}
			continue
		}
		next.Version = t.Version + 1
		f.Since = next.Version
		next.Fields = append(next.Fields, f)
	}
	return next, next.Validate()
}
