package logql

import (
	"slices"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// Labels under which Grafana and Loki's agents know what Almanac calls otherwise. They may be asked for, and name no stream.
var aliases = map[string]string{"service_name": schemas.ColService, "detected_level": schemas.ColLevel}

// LabelTopic is the label of a topic's name.
const LabelTopic = "topic"

// form is how the text of a field may be compared by a filter.
type form int

const (
	formText form = iota // a column of texts, or an attribute
	formAttr
	formInt
	formFloat
	formOther // its text is not what a filter compares with
	formTopic // the topic's name
)

// source is where the values of a label come from.
type source struct {
	name string // as a filter writes it
	form form
}

// topicFields are the labels of a topic's events: those of its streams, and the others of which is known what they are.
type topicFields struct {
	topic   *schemas.Topic
	streams []string // labels that name streams, in their order, LabelTopic first
	sources map[string]source
	// named are the attributes that are known, by their label.
	named map[string][]string
}

func fieldsOf(t *schemas.Topic, attributes []string) *topicFields {
	f := &topicFields{topic: t, streams: []string{LabelTopic, schemas.ColService, schemas.ColLevel}, sources: map[string]source{}, named: map[string][]string{}}
	for _, c := range []string{schemas.ColService, schemas.ColLevel, schemas.ColType, schemas.ColUserID, schemas.ColTraceID, schemas.ColSpanID} {
		f.sources[c] = source{c, formText}
	}
	f.sources[LabelTopic] = source{form: formTopic}
	for _, c := range []string{schemas.ColID, schemas.ColShard, schemas.ColMonth, schemas.ColPos} {
		f.sources[c] = source{c, formOther}
	}
	forms := map[schemas.FieldType]form{schemas.TypeString: formText, schemas.TypeLowCardinality: formText, schemas.TypeInt64: formInt, schemas.TypeFloat64: formFloat}
	for i := range t.Fields {
		field := &t.Fields[i]
		kind, ok := forms[field.Type]
		if !ok {
			kind = formOther
		}
		label := LabelName(field.Name)
		f.sources[label] = source{"`" + field.Name + "`", kind}
		if field.Type == schemas.TypeLowCardinality {
			f.streams = append(f.streams, label)
		}
	}
	for _, key := range attributes {
		f.named[LabelName(key)] = append(f.named[LabelName(key)], key)
	}
	return f
}

// of returns where a label's values come from, and whether that is one place.
func (f *topicFields) of(label string) (source, bool) {
	if as := aliases[label]; as != "" {
		if _, own := f.sources[label]; !own {
			label = as
		}
	}
	if s, ok := f.sources[label]; ok {
		return s, true
	}
	keys := f.named[label]
	if len(keys) == 1 {
		return source{filter.AttributeName(keys[0]), formAttr}, true
	}
	return source{filter.AttributeName(label), formAttr}, len(keys) == 0
}

// stream reports whether a label names streams.
func (f *topicFields) stream(label string) bool { return slices.Contains(f.streams, label) }
