package frame

import (
	"bytes"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

// sortedAttrs appends the indices of attributes in the order of their names. Few events
// have more than ten, and most come in order.
func sortedAttrs(order []int16, attrs []schemas.Attr) []int16 {
	for i := range attrs {
		at := len(order)
		for at > 0 && attrs[order[at-1]].Key > attrs[i].Key {
			at--
		}
		order = append(order, 0)
		copy(order[at+1:], order[at:])
		order[at] = int16(i)
	}
	return order
}

// checkOrder refuses a frame whose attributes are not sorted by name, each once, event by
// event.
func (r *Reader) checkOrder() error {
	col := &r.columns[inAttributes]
	from := uint64(0)
	for i := range r.rows {
		for k := from + 1; k < r.attrEnd[i]; k++ {
			before, name := r.bytesOf(col, int(col.keys[k-1])), r.bytesOf(col, int(col.keys[k]))
			if bytes.Compare(before, name) >= 0 {
				return fmt.Errorf("%w: event %d has the attribute %.80q before %.80q; topics of kind %s have them sorted by name, each once", schemas.ErrLabels, i+1, before, name, r.topic.Kind)
			}
		}
		from = r.attrEnd[i]
	}
	return nil
}
