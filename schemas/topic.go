package schemas

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// DefaultLanes is the number of lanes of a topic that does not say, unless its kind does. One
// lane takes what two cores can give (docs/measurements.md, 2026-11-23), and at steady loads
// costs 0.55 to 0.65 of what four do. A topic of more than some 300,000 events/s wants
// more, so that several routers and sinks share it; lanes are frozen.
const DefaultLanes = 1

// MaxLanes bounds the lanes of a topic: each is a consumer, a router loop and
// an active shard.
const MaxLanes = 256

// DefaultKeepDays is the retention of a topic declared without one: 0, kept
// until the topic is changed.
const DefaultKeepDays = 0

// Topic is the descriptor of a topic, as the registry keeps it under
// topics.<topic>.
type Topic struct {
	Name string `json:"name" yaml:"name"`
	Kind Kind   `json:"kind" yaml:"kind"`
	// Lanes is the number of slices of each month, 1 to MaxLanes.
	Lanes int `json:"lanes" yaml:"lanes"`
	// LaneBy is the key of the lane: column or attribute names, joined.
	LaneBy []string `json:"lane_by" yaml:"lane_by"`
	// Fields are the promoted fields, in column order.
	Fields []Field `json:"fields" yaml:"fields"`
	// Rotate is when a shard is full.
	Rotate Rotation `json:"rotate" yaml:"rotate"`
	// KeepDays is how long events are kept; 0 forever. Anonymise clears fields of
	// older ones. Both rule every month, whatever they were when it began.
	KeepDays  int       `json:"keep_days" yaml:"keep_days"`
	Anonymise Anonymise `json:"anonymise,omitzero" yaml:"anonymise,omitempty"`
	// ColdAfterDays is the age of events whose closed shards move to the volume VolumeCold; 0: never.
	ColdAfterDays int `json:"cold_after_days,omitempty" yaml:"cold_after_days,omitempty"`
	// SQLFresh is how long an accepted event may take until SQL has it; 0:
	// DefaultSQLFresh. Queries have it at once.
	SQLFresh time.Duration `json:"sql_fresh,omitempty" yaml:"sql_fresh,omitempty"`
	// PII is what becomes of fields before an event is stored. A producer applies the rules that it read
	// when it started, a router those that came since (RulesAfter).
	PII []Private `json:"pii,omitempty" yaml:"pii,omitempty"`
	// Lifted are hash rules that were taken back: frames that were made under one must not be hashed again.
	Lifted []Private `json:"lifted,omitempty" yaml:"-"`
	// OnceBy are the columns that make two events the same one, so that a copy that is
	// sent again is not counted. None: what the kind says, or the id. Frozen.
	OnceBy []string `json:"once_by,omitempty" yaml:"once_by,omitempty"`
	// OnceWithin is how long after an event an equal one is a copy of it; 0: however long,
	// while the rows are there. Frozen.
	OnceWithin time.Duration `json:"once_within,omitempty" yaml:"once_within,omitempty"`
	// BodyLimit is the longest body that an event of kind audit keeps, in bytes; 0:
	// DefaultBodyLimit. Of a longer one its length and SHA-256 are kept.
	BodyLimit uint64 `json:"body_limit,omitempty" yaml:"body_limit,omitempty"`
	// Documents are the settings of kind document.
	Documents Documents `json:"documents,omitzero" yaml:"documents,omitempty"`
	// Metrics describe metrics of kind metric, by name. A change rules the points of producers
	// that start after it. Strict refuses metrics that are not described.
	Metrics []MetricDescriptor `json:"metrics,omitempty" yaml:"metrics,omitempty"`
	Strict  bool               `json:"strict,omitempty" yaml:"strict,omitempty"`
	// Version is the schema version: 1, then one more with each change of
	// Fields or PII. Set by Evolve, not by people.
	Version int `json:"version" yaml:"-"`
	// First is the schema version that the topic began with, where its name was another topic's before, which was removed; 0: 1. A frame
	// of a lower version is of that one. Set by the registry.
	First int `json:"first,omitempty" yaml:"-"`
}

// NewTopic is a topic of kind log with every default.
func NewTopic(name string, fields ...Field) Topic { return NewTopicOf(KindLog, name, fields...) }

// NewTopicOf is a topic of a kind with every default, and the fields after the kind's.
func NewTopicOf(kind Kind, name string, fields ...Field) Topic {
	t := Topic{Name: name, Kind: kind, Fields: slices.Clone(fields)}
	t.setDefaults()
	return t
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

// Declared is t as a person declared it, with defaults filled in and checked.
func (t Topic) Declared() (Topic, error) {
	t.Fields = slices.Clone(t.Fields)
	t.setDefaults()
	return t, t.Validate()
}

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

// After is t as the topic that follows one of its name, whose last schema version was last: it goes on counting from there.
func (t Topic) After(last int) Topic {
	t.Version, t.First = last+1, last+1
	return t
}

// Earlier reports whether frames of schema version v are of an earlier topic of the name.
func (t *Topic) Earlier(v int) bool { return v < t.First }

// FieldsAt are the promoted fields of schema version v, in column order.
func (t *Topic) FieldsAt(v int) []Field {
	for i, f := range t.Fields {
		if f.Since > v {
			return t.Fields[:i:i] // Evolve only appends, so Since never falls
		}
	}
	return t.Fields
}
