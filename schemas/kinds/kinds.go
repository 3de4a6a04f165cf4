package kinds

import (
	"strings"
	"time"
)

// Kind is what a topic is for: which fields and rules its events have, and how they are read.
type Kind string

// The kinds.
const (
	Log      Kind = "log"      // append-only events
	Meter    Kind = "meter"    // signed changes of a size, each counted once
	Metric   Kind = "metric"   // points of time series
	Audit    Kind = "audit"    // who changed what
	Document Kind = "document" // versions of documents
	Timer    Kind = "timer"    // transitions of timers
)

// Wins says which of several events with the same Once columns counts.
type Wins uint8

// First counts the one with the least (ts, id), Last the one with the greatest id.
const (
	First Wins = iota
	Last
)

// Spec is a kind. Every field but Kind and Table may be empty.
type Spec struct {
	Kind  Kind
	Short string // for help: what a topic of the kind holds

	// Fields are the promoted fields that every topic of the kind begins with.
	Fields []Field
	// Codecs, by field, replace the codec of the field's type in the table.
	Codecs map[string]string
	// Rules hold for every event: the producer and JSON inputs check the event, the
	// router the columns of the frame.
	Rules []Rule
	// Sorted says that the attributes of an event are sorted by name, each once.
	Sorted bool

	// Lanes is the default number of lanes; 0: schemas.DefaultLanes.
	Lanes int
	// LaneBy is the default lane key. LaneByAttributes means all attributes. Of a kind whose events have an identity
	// it is of that alone: some of Once, or what tells the records of a front apart.
	LaneBy []string
	// Rotate is the default rotation.
	Rotate Rotation
	// Once are the columns that make two events the same one; none: the id.
	Once []string
	Wins Wins
	// FoundBy are columns by which the table is sorted that find equal events, the last of them ts. None: the table has a
	// column for that, which is a hash of Once.
	FoundBy []string
	// NoOtherFields refuses fields beside the kind's: attributes (labels) tell the series of a
	// metric apart, and a promoted column is none.
	NoOtherFields bool
	// MaxFuture is how far ahead of the clock an event's time may lie; 0: schemas.MaxFuture.
	MaxFuture time.Duration
	// Waits says that nothing may be dropped: Publish, Submit, or Log under block or spool.
	Waits bool
	// Seals says that closed shards are sealed: schemas.Seal.
	Seals bool
	// Bodies are columns of JSON whose texts are cut at the topic's body limit.
	Bodies []Body

	// Table is the template of the topic's table, a file of schemas/sql.
	Table string
	// Sort are the columns by which the table is sorted, as it says too. ClickHouse refuses to change them.
	Sort []string
	// Derived are tables filled from it, shard by shard.
	Derived []Derived
	// Views are made beside the table.
	Views []View
	// Front is the stream that the topic's lanes are read from; empty: EVENTS. Such a
	// topic takes events from its front alone: frames and bare JSON are refused.
	Front string
}

// LaneByAttributes in a lane key stands for all attributes of the event.
const LaneByAttributes = ColAttributes

// Rule is what the values of a column must keep to.
type Rule struct {
	Column string
	// Present: an event must bring the column, or the one that Or names. A frame cannot be
	// asked, since the type's zero stands for a missing value.
	Present bool
	Or      string
	// NotEmpty: a text has at least one byte.
	NotEmpty bool
	// Lo and Hi bound whole numbers, compared as int64. Both 0: no bounds.
	Lo, Hi int64
	// OneOf are the words a text may be.
	OneOf []string
	// Finite refuses NaN and infinities.
	Finite bool
	// Exact refuses whole numbers that the column of floating-point numbers would round.
	Exact bool
	// NotNegative refuses numbers below zero.
	NotNegative bool
	// NotBelow names a column of numbers that this one may not be less than.
	NotBelow string
	// NotAfter names a column of time that this one may not be later than.
	NotAfter string
	// BucketsOf says that a text is empty or a histogram, and names the column that has the
	// sum of its counts.
	BucketsOf string
}

// Body is a column of JSON text that may be long.
type Body struct {
	Column string
	Bytes  string // the column with the length that the text came with
}

// Derived is a table filled from a topic's, shard by shard.
type Derived struct {
	Name     string // "repeats": the table <topic>.repeats; no topic can have such a name
	Table    string // template of the definition, a file of schemas/sql
	Fill     string // template of INSERT … SELECT of the positions (from, to] of a shard
	After    string // the derived table that must have got as far
	Additive bool   // a second fill would count twice, so that it asserts its own head
	Outlives bool   // stays when retention drops the shard's rows
	View     string // suffix of the view that people select from, such as "_once"; empty: none
	Select   string // template of that view, a file of schemas/sql
}

// View is a ready-made view of a topic.
type View struct {
	Suffix string // of the topic's name, such as "_latest"
	Select string // template, a file of schemas/sql
}

// specs are all kinds, in the order that help lists them.
var specs = []*Spec{&logs, &meters, &metrics, &audits, &documents, &timers}

// All lists the words of the kinds.
func All() (out []Kind) {
	for _, s := range specs {
		out = append(out, s.Kind)
	}
	return out
}

// Declare is the command that declares a topic of the kind.
func (k Kind) Declare(topic string) string {
	command := "almanac topics apply " + topic
	if k != "" && k != Log {
		command += " --kind " + string(k)
	}
	return command
}

// List is the words of the kinds for messages and help: "log, meter, …".
func List() string {
	words := make([]string, len(specs))
	for i, s := range specs {
		words[i] = string(s.Kind)
	}
	return strings.Join(words, ", ")
}

// Specs lists every kind.
func Specs() []*Spec { return specs }

// Spec returns what the kind is; nil for a word that names no kind. The empty kind is Log.
func (k Kind) Spec() *Spec {
	if k == "" {
		return &logs
	}
	for _, s := range specs {
		if s.Kind == k {
			return s
		}
	}
	return nil
}

// Field returns the kind's field of that name, nil when it lacks one.
func (s *Spec) Field(name string) *Field {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return &s.Fields[i]
		}
	}
	return nil
}

// Column returns the definition of a promoted field's column in the topic's table.
func (s *Spec) Column(f Field) string {
	if codec := s.Codecs[f.Name]; codec != "" && s.Field(f.Name) != nil {
		return f.Type.Wire() + " CODEC(" + codec + ")"
	}
	return f.Type.column()
}
