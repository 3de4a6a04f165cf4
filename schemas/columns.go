package schemas

import "strings"

// colType is a ClickHouse type a frame's column may have.
type colType string

const (
	chDateTime64 colType = "DateTime64(9, 'UTC')"
	chUUID       colType = "UUID"
	chString     colType = "String"
	chLowCard    colType = "LowCardinality(String)"
	chInt64      colType = "Int64"
	chFloat64    colType = "Float64"
	chBool       colType = "Bool"
	chDecimal    colType = "Decimal(38, 18)"
	chUInt64     colType = "UInt64" // of pos; no event has one
	chMap        colType = "Map(LowCardinality(String), String)"
)

// frameColumn is one column of a frame: its name and its type on the wire,
// which is also its type in the table.
type frameColumn struct {
	name string
	typ  colType
}

// Where the columns of every frame of kind log are in it.
const (
	inTs = iota
	inID
	inLevel
	inService
	inType
	inUserID
	inTraceID
	inSpanID
	inMessage
	inAttributes
)

// baseColumns are the columns of every frame of kind log, in wire order.
var baseColumns = [...]frameColumn{
	inTs:         {ColTs, chDateTime64},
	inID:         {ColID, chUUID},
	inLevel:      {ColLevel, chLowCard},
	inService:    {ColService, chLowCard},
	inType:       {ColType, chLowCard},
	inUserID:     {ColUserID, chString},
	inTraceID:    {ColTraceID, chString},
	inSpanID:     {ColSpanID, chString},
	inMessage:    {ColMessage, chString},
	inAttributes: {ColAttributes, chMap},
}

// wireOf is the type of a promoted field's column in a frame.
func wireOf(t FieldType) colType { return colType(t.Wire()) }

// frameColumns are the columns of a frame of schema version v.
func (t *Topic) frameColumns(v int) []frameColumn {
	fields := t.FieldsAt(v)
	cols := make([]frameColumn, len(baseColumns), len(baseColumns)+len(fields))
	copy(cols, baseColumns[:])
	for _, f := range fields {
		cols = append(cols, frameColumn{f.Name, wireOf(f.Type)})
	}
	return cols
}

// FrameStructure is the columns of a frame of schema version v as ClickHouse's
// input() and external tables want them: name Type, name Type.
func (t *Topic) FrameStructure(v int) string {
	var b strings.Builder
	for i, c := range t.frameColumns(v) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("`" + c.name + "` " + string(c.typ))
	}
	return b.String()
}

// Columns are the names of the columns an event of schema version v has, in
// order, without those the sink adds.
func (t *Topic) Columns(v int) []string {
	cols := t.frameColumns(v)
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.name
	}
	return names
}
