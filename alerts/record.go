package alerts

import (
	"fmt"
	"unicode/utf8"

	"github.com/almanac-events/almanac/query/prometheus/expr"
)

// nameLabel is the label that has a metric's name.
const nameLabel = "__name__"

// validateRecord refuses what cannot be of a rule that records.
func (r *Rule) validateRecord() error {
	switch {
	case r.Alert != "":
		return fmt.Errorf("record %q and alert: expected one of them", r.Record)
	case r.Expr == "":
		return fmt.Errorf("record %q: a rule that records is over an expression (expr)", r.Record)
	case len(r.Record) > MaxNameBytes || !expr.ValidName(r.Record):
		return fmt.Errorf("record: %.40q; expected the name of a metric, of at most %d bytes", r.Record, MaxNameBytes)
	case r.For > 0 || r.KeepFiringFor > 0 || len(r.Annotations) > 0 || len(r.Notify) > 0:
		return fmt.Errorf("record %q: for, keep_firing_for, annotations and notify are of alerts", r.Record)
	}
	for name, text := range r.Labels {
		if name == nameLabel || !utf8.ValidString(text) {
			return fmt.Errorf("record %q: label %q: expected UTF-8, and not the metric's name", r.Record, name)
		}
	}
	return nil
}
