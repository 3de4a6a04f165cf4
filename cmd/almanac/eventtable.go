package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// eventTable shows what people look at first, one line for an event; -o ndjson
// has all of it.
func eventTable(topic *schemas.Topic, events []json.RawMessage) table.Writer {
	if columns := kindColumns(topic); columns != nil {
		return fieldTable(columns, events)
	}
	t := newTable("time", "level", "service", "type", "user", "message", "more")
	short := func(s string, n int) string { return text.Snip(s, n, "…") }
	t.SetColumnConfigs([]table.ColumnConfig{
		{Name: "message", WidthMax: 80, WidthMaxEnforcer: short},
		{Name: "more", WidthMax: 80, WidthMaxEnforcer: short},
	})
	for _, raw := range events {
		e := readEvent(raw)
		t.AppendRow(table.Row{e.ts, e.level, e.service, e.kind, e.user, e.message, e.more})
	}
	return t
}

// kindColumns are what people look at first in a kind that has fields of its own; nil for
// kind log.
func kindColumns(topic *schemas.Topic) []string {
	spec := topic.Spec()
	if len(spec.Fields) == 0 {
		return nil
	}
	columns := []string{schemas.ColTs, schemas.ColType, schemas.ColUserID}
	for _, f := range spec.Fields {
		columns = append(columns, f.Name)
	}
	return append(columns, schemas.ColAttributes)
}

// fieldTable shows the fields that were asked for, a column each.
func fieldTable(names []string, events []json.RawMessage) table.Writer {
	heads := make([]string, len(names))
	for i, name := range names {
		heads[i] = strings.TrimSpace(name)
	}
	t := newTable(heads...)
	t.Style().Format.Header = text.FormatDefault
	for _, raw := range events {
		row := make(table.Row, len(names))
		for i, cell := range fieldCells(names, raw) {
			row[i] = cell
		}
		t.AppendRow(row)
	}
	return t
}

// fieldCells are an event's fields by their names, for people.
func fieldCells(names []string, raw json.RawMessage) []string {
	var columns map[string]json.RawMessage
	var attributes map[string]string
	_ = json.Unmarshal(raw, &columns) // our own JSON
	_ = json.Unmarshal(columns[schemas.ColAttributes], &attributes)
	cells := make([]string, len(names))
	for i, name := range names {
		name = strings.TrimSpace(name)
		if v, ok := columns[strings.Trim(name, "`")]; ok && name != schemas.ColAttributes {
			cells[i] = printable(plainText(v))
		} else if name == schemas.ColAttributes {
			cells[i] = printable(pairs(attributes))
		} else {
			cells[i] = printable(attributes[query.AttributeOf(name)])
		}
	}
	return cells
}

// event is one event for people.
type event struct{ ts, level, service, kind, user, message, more string }

// plainColumns are shown in columns of their own, or are of no interest to people.
var plainColumns = []string{
	schemas.ColTs, schemas.ColLevel, schemas.ColService, schemas.ColType, schemas.ColUserID, schemas.ColMessage, schemas.ColAttributes,
	schemas.ColID, schemas.ColMonth, schemas.ColShard, schemas.ColPos,
}

// readEvent reads an event's JSON for people. What has no column of its own goes to more;
// what is not JSON of an event is the message, as it is.
func readEvent(raw json.RawMessage) event {
	var row map[string]json.RawMessage
	if err := json.Unmarshal(raw, &row); err != nil {
		return event{message: printable(string(raw))}
	}
	get := func(name string) string { return printable(plainText(row[name])) }
	e := event{
		ts: get(schemas.ColTs), level: get(schemas.ColLevel), service: get(schemas.ColService),
		kind: get(schemas.ColType), user: get(schemas.ColUserID), message: get(schemas.ColMessage),
	}
	more := map[string]string{}
	for name, v := range row {
		// A promoted field an event lacks is its type's zero.
		if s := plainText(v); !slices.Contains(plainColumns, name) && !slices.Contains([]string{"", "0", "false"}, s) {
			more[name] = s
		}
	}
	var attributes map[string]string
	_ = json.Unmarshal(row[schemas.ColAttributes], &attributes) // what is not a map is not shown
	for name, v := range attributes {
		more[name] = v
	}
	e.more = printable(pairs(more))
	return e
}

// plainText is a JSON value as people write it.
func plainText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// pairs is name=value, by name.
func pairs(m map[string]string) string {
	out := make([]string, 0, len(m))
	for name, v := range m {
		if strings.ContainsAny(v, " \"\n\t") {
			v = fmt.Sprintf("%q", v)
		}
		out = append(out, name+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
