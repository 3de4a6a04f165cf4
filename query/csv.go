package query

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// CSV writes events as rows of CSV, under a row of the names: those that were asked for, else all columns of the topic. Texts are as
// they are, and attributes one cell of JSON.
type CSV struct {
	names []string
	w     *csv.Writer
}

// NewCSV writes the names.
func NewCSV(to io.Writer, t *schemas.Topic, fields []string) (*CSV, error) {
	c := &CSV{w: csv.NewWriter(to)}
	for _, name := range fields {
		c.names = append(c.names, strings.TrimSpace(name))
	}
	if len(fields) == 0 {
		c.names = append(t.Columns(t.Version), schemas.ColMonth, schemas.ColShard, schemas.ColPos)
	}
	if err := c.w.Write(c.names); err != nil {
		return nil, err
	}
	c.w.Flush()
	return c, c.w.Error()
}

// Write writes events, each a row.
func (c *CSV) Write(events []json.RawMessage) error {
	for _, event := range events {
		cells, err := cellsOf(c.names, event)
		if err != nil {
			return err
		}
		if err := c.w.Write(cells); err != nil {
			return err
		}
	}
	c.w.Flush()
	return c.w.Error()
}

func cellsOf(names []string, event json.RawMessage) ([]string, error) {
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(event, &columns); err != nil {
		return nil, err
	}
	var attributes map[string]string
	if raw := columns[schemas.ColAttributes]; raw != nil {
		if err := json.Unmarshal(raw, &attributes); err != nil {
			return nil, err
		}
	}
	cells := make([]string, len(names))
	for i, name := range names {
		if v, ok := columns[strings.Trim(name, "`")]; ok {
			cells[i] = cellText(v)
			continue
		}
		cells[i] = attributes[AttributeOf(name)]
	}
	return cells, nil
}

// AttributeOf is the attribute that a field names: attributes.x or attributes['x'].
func AttributeOf(field string) string {
	if key, ok := strings.CutPrefix(field, schemas.ColAttributes+"."); ok {
		return key
	}
	return strings.Trim(strings.TrimPrefix(field, schemas.ColAttributes), `[]'"`)
}

// cellText is a text as it is, and other JSON as it is written; null is empty.
func cellText(v json.RawMessage) string {
	var text *string
	if json.Unmarshal(v, &text) != nil {
		return string(v)
	}
	if text == nil {
		return ""
	}
	return *text
}
