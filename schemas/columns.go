package schemas

import (
	"strings"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// BaseColumns are the columns with which every frame begins, in wire order; the fields of its kind and topic follow.
var BaseColumns = [...]Column{
	{ColTs, kinds.WireTime},
	{ColID, kinds.WireUUID},
	{ColLevel, kinds.WireLowCardinality},
	{ColService, kinds.WireLowCardinality},
	{ColType, kinds.WireLowCardinality},
	{ColUserID, kinds.WireString},
	{ColTraceID, kinds.WireString},
	{ColSpanID, kinds.WireString},
	{ColMessage, kinds.WireString},
	{ColAttributes, kinds.WireMap},
}

// FrameColumns are the columns of a frame of schema version v. Their types on the wire are
// also those in the table.
func (t *Topic) FrameColumns(v int) []Column {
	fields := t.FieldsAt(v)
	cols := make([]Column, len(BaseColumns), len(BaseColumns)+len(fields))
	copy(cols, BaseColumns[:])
	for _, f := range fields {
		cols = append(cols, Column{f.Name, f.Type.Wire()})
	}
	return cols
}

// FrameStructure is the columns of a frame of schema version v as ClickHouse's
// input() and external tables want them: name Type, name Type.
func (t *Topic) FrameStructure(v int) string {
	var b strings.Builder
	for i, c := range t.FrameColumns(v) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("`" + c.Name + "` " + c.Type)
	}
	return b.String()
}

// Columns are the names of the columns an event of schema version v has, in
// order, without those the sink adds.
func (t *Topic) Columns(v int) []string {
	cols := t.FrameColumns(v)
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.Name
	}
	return names
}
