package kinds

import "strings"

// FieldType is the type of a promoted field.
type FieldType string

// The types a promoted field may have. A missing value is the type's zero.
const (
	TypeString         FieldType = "string"
	TypeLowCardinality FieldType = "lowcardinality"
	TypeInt64          FieldType = "int64"
	TypeFloat64        FieldType = "float64"
	TypeBool           FieldType = "bool"
	TypeTimestamp      FieldType = "timestamp"
	// TypeJSON is JSON text. An object under the field's name is kept whole.
	TypeJSON FieldType = "json"
	// TypeDecimal has up to 20 digits before the point and 18 after it, exactly.
	TypeDecimal FieldType = "decimal"
)

// FieldTypes lists every type, for messages and help.
var FieldTypes = []FieldType{TypeString, TypeLowCardinality, TypeInt64, TypeFloat64, TypeBool, TypeTimestamp, TypeJSON, TypeDecimal}

// Field is a promoted field: an attribute that gets a typed column of its own.
type Field struct {
	Name string    `json:"name" yaml:"name"`
	Type FieldType `json:"type" yaml:"type"`
	// From is another name under which events bring the value: a key, or the keys of nested
	// objects joined with dots. Empty: Name alone. It stays as declared.
	From string `json:"from,omitempty" yaml:"from,omitempty"`
	// Since is the schema version that brought the field; 1 when the topic was
	// declared with it. Set by Evolve, not by people.
	Since int `json:"since" yaml:"-"`
}

// Takes reports whether an attribute of that name belongs in the field's column.
func (f *Field) Takes(key string) bool { return f.Name == key || f.From != "" && f.From == key }

// IsText says whether a value is kept as text, and not in a fixed number of bytes.
func (t FieldType) IsText() bool { return t == TypeString || t == TypeLowCardinality || t == TypeJSON }

// The types of ClickHouse that a column of a frame may have.
const (
	WireTime           = "DateTime64(9, 'UTC')"
	WireUUID           = "UUID"
	WireString         = "String"
	WireLowCardinality = "LowCardinality(String)"
	WireInt64          = "Int64"
	WireFloat64        = "Float64"
	WireBool           = "Bool"
	WireDecimal        = "Decimal(38, 18)"
	WireUInt64         = "UInt64" // of pos; no event has one
	WireMap            = "Map(LowCardinality(String), String)"
)

// Wire is the type's name in ClickHouse, in frames and tables.
func (t FieldType) Wire() string {
	switch t {
	case TypeString, TypeJSON:
		return WireString
	case TypeLowCardinality:
		return WireLowCardinality
	case TypeInt64:
		return WireInt64
	case TypeFloat64:
		return WireFloat64
	case TypeBool:
		return WireBool
	case TypeTimestamp:
		return WireTime
	case TypeDecimal:
		return WireDecimal
	}
	return ""
}

// column is the type with its codec in a table.
func (t FieldType) column() string {
	switch t {
	case TypeInt64:
		return t.Wire() + " CODEC(T64, ZSTD(1))"
	case TypeJSON:
		return t.Wire() + " CODEC(ZSTD(6))"
	case TypeTimestamp:
		return t.Wire() + " CODEC(Delta(8), ZSTD(1))"
	}
	return t.Wire() + " CODEC(ZSTD(1))"
}

// DefaultSQL is the value a row has whose frame did not know the field yet.
func (f Field) DefaultSQL() string {
	return "defaultValueOfTypeName('" + strings.ReplaceAll(f.Type.Wire(), "'", "\\'") + "')"
}
