package otlp

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// source is what all data points of a resource and scope have in common.
type source struct {
	first         func(name string) bool // names that the topic takes first
	service, user string
	labels        labels

	known *known // nil: each data point becomes an event
	said  []byte // by which known tells its series from those of others
}

// labels are attributes as the labels of a series: texts, none of them empty.
type labels struct{ attributes }

func (l *labels) add(name string, v pcommon.Value) {
	if v.Type() == pcommon.ValueTypeMap {
		for inner, v := range v.Map().All() {
			l.add(name+"."+inner, v)
		}
		return
	}
	l.text(name, textOf(v))
}

// text adds a label that is not empty: one without a value is as none.
func (l *labels) text(name, v string) {
	if v == "" {
		return
	}
	l.plain(schemas.String(labelKey(name), v))
}

// labelKey is the name of a label beside the columns of a point, and beside what Prometheus
// calls them.
func labelKey(name string) string {
	if column, _, _ := strings.Cut(name, "#"); column == schemas.ColService || column == schemas.ColUserID || column == "__name__" {
		return "label." + name
	}
	return kinds.LabelKey(name)
}

func (s *source) resource(r pcommon.Resource) {
	s.service, s.user = ofResource(r, s.labels.add)
}

// ofResource returns the service and the user that a resource names, and calls add with each of its
// other attributes.
func ofResource(r pcommon.Resource, add func(name string, v pcommon.Value)) (service, user string) {
	for name, v := range r.Attributes().All() {
		switch {
		case name == "service.name" && v.Type() == pcommon.ValueTypeStr:
			service = v.Str()
		case isUser(name) && user == "":
			user = v.AsString()
		default:
			add("resource."+name, v)
		}
	}
	return service, user
}

// scope returns s with what a scope adds.
func (s *source) scope(scope pcommon.InstrumentationScope) source {
	out := *s
	out.labels = labels{s.labels.clone()}
	out.labels.text("scope.name", scope.Name())
	out.labels.text("scope.version", scope.Version())
	for name, v := range scope.Attributes().All() {
		out.labels.add("scope."+name, v)
	}
	return out
}
