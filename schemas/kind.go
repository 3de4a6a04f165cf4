package schemas

import (
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

// MetricDescriptor says what the points of one metric are.
type MetricDescriptor = kinds.MetricDescriptor
