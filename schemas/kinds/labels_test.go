package kinds

import "testing"

// A label's name comes back as it was, whatever it is.
func TestLabelKey(t *testing.T) {
	t.Parallel()
	for label, key := range map[string]string{
		"job": "job", "unit": "label.unit", "value": "label.value", "label.unit": "label.label.unit", "label.": "label.label.", "label.x": "label.label.x", "label": "label",
	} {
		if got := LabelKey(label); got != key || LabelOf(key) != label {
			t.Errorf("%q: %q, and back %q", label, got, LabelOf(got))
		}
	}
	if got := LabelOf("label.job"); got != "label.job" {
		t.Errorf("an attribute that LabelKey does not make: %q", got)
	}
}
