package schemas

import (
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
