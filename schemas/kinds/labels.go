package kinds

import "strings"

// labelPrefix is put before labels of other systems that are named like a column of the kind.
const labelPrefix = "label."

// LabelKey is the name of the attribute that has a label of another system, such as
// Prometheus: the label's own, unless the kind has a column of that name.
func LabelKey(label string) string {
	if metrics.Field(label) != nil || strings.HasPrefix(label, labelPrefix) {
		return labelPrefix + label
	}
	return label
}

// LabelOf is the label that an attribute has, as LabelKey named it.
func LabelOf(key string) string {
	if label, ok := strings.CutPrefix(key, labelPrefix); ok && LabelKey(label) == key {
		return label
	}
	return key
}
