package schemas

import (
	"fmt"
	"strings"
)

// checkLabels refuses an event two of whose attributes have one name, in a kind whose
// attributes are sorted: they would be two series or one, by chance.
func checkLabels(attrs []Attr) error {
	for i := range attrs {
		for k := range i {
			if attrs[k].Key == attrs[i].Key {
				return fmt.Errorf("%w: attribute %q is given twice", ErrLabels, strings.Clone(attrs[i].Key))
			}
		}
	}
	return nil
}
