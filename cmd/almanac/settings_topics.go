package main

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/almanac-events/almanac/schemas"
)

// readTopics reads the list under topics:
//
//	topics:
//	  - name: auth
//	    fields: [{name: duration_ms, type: float64}, {name: event_name, type: string, from: eventName}]
//	    rotate: {rows: 5000000, bytes: 1GiB, span: 24h}
//	    keep_days: 90
//	    sql_fresh: 1s
//	    anonymise: {after_days: 30, fields: [user_id, attributes.ip]}
//	    pii: [{field: user_id, rule: hash}, {field: lat, rule: coarse_location, grid: 0.5}]
func readTopics(path string, list *yaml.Node) ([]schemas.Topic, error) {
	if list.Tag == "!!null" {
		return nil, nil
	}
	if list.Kind != yaml.SequenceNode {
		return nil, at(path, list, "topics must be a list, each topic beginning with - name: …")
	}
	topics := make([]schemas.Topic, 0, len(list.Content))
	seen := map[string]bool{}
	for _, node := range list.Content {
		t, err := readTopic(path, node)
		if err != nil {
			return nil, err
		}
		if _, err := t.Declared(); err != nil {
			return nil, at(path, node, "%v", err)
		}
		if seen[t.Name] {
			return nil, at(path, node, "topic %q is declared twice", t.Name)
		}
		seen[t.Name] = true
		topics = append(topics, t)
	}
	return topics, nil
}

// readTopic reads the keys of one topic: its name and schemas.Options, those of a group in
// a mapping of their own.
func readTopic(path string, node *yaml.Node) (t schemas.Topic, err error) {
	known, groups := []string{"name"}, map[string][]string{}
	for i := range schemas.Options {
		group, key, grouped := strings.Cut(schemas.Options[i].Key, ".")
		if grouped {
			groups[group] = append(groups[group], key)
		}
		if !slices.Contains(known, group) {
			known = append(known, group)
		}
	}
	err = eachKey(path, node, "key of a topic", known, func(name string, v *yaml.Node) error {
		if name == "name" {
			return decode(path, v, name, "a name", &t.Name)
		}
		if groups[name] == nil {
			return readOption(path, v, name, &t)
		}
		return eachKey(path, v, "key of "+name, groups[name], func(key string, v *yaml.Node) error {
			return readOption(path, v, name+"."+key, &t)
		})
	})
	return t, err
}

// readOption reads the value of an option.
func readOption(path string, v *yaml.Node, key string, t *schemas.Topic) (err error) {
	if v.Tag == "!!null" {
		return nil // "key:" alone: not set
	}
	i := slices.IndexFunc(schemas.Options, func(o schemas.Option) bool { return o.Key == key })
	o := &schemas.Options[i]
	switch into := o.Of(t).(type) {
	case *[]schemas.Field:
		*into, err = readList(path, v, "fields must be a list of {name: …, type: …, from: …}", readField)
		return err
	case *[]schemas.Private:
		*into, err = readList(path, v, "pii must be a list of {field: …, rule: …}", readRule)
		return err
	case *[]schemas.MetricDescriptor:
		*into, err = readList(path, v, "metrics must be a list of {name: …, unit: …, labels: […]}", readMetric)
		return err
	case *[]string:
		*into = []string{} // given and empty: as lane_by, the producer's id
		return decode(path, v, key, "a list of names", into)
	}
	var text string
	if err := decode(path, v, key, "one value", &text); err != nil {
		return err
	}
	if err := setOption(o, t, text); err != nil {
		return at(path, v, "%s: %v", key, err)
	}
	return nil
}

// readList reads a list of maps; form says what they are.
func readList[T any](path string, list *yaml.Node, form string, read func(path string, node *yaml.Node) (T, error)) ([]T, error) {
	if list.Kind != yaml.SequenceNode {
		return nil, at(path, list, "%s", form)
	}
	out := make([]T, len(list.Content))
	for i, node := range list.Content {
		var err error
		if out[i], err = read(path, node); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func readField(path string, node *yaml.Node) (f schemas.Field, err error) {
	err = eachKey(path, node, "key of a field", []string{"name", "type", "from"}, func(name string, v *yaml.Node) error {
		switch name {
		case "name":
			return decode(path, v, name, "a name", &f.Name)
		case "from":
			return decode(path, v, name, "the name, or dotted path, that events bring it by", &f.From)
		}
		return decode(path, v, name, "a type", &f.Type)
	})
	return f, err
}

func readMetric(path string, node *yaml.Node) (d schemas.MetricDescriptor, err error) {
	texts := map[string]*string{"name": &d.Name, "unit": &d.Unit, "points": &d.Points, "type": &d.Type}
	err = eachKey(path, node, "key of a metric", []string{"name", "unit", "points", "type", "labels", "required", "defaults"}, func(name string, v *yaml.Node) error {
		switch name {
		case "labels":
			return decode(path, v, name, "a list of names", &d.Labels)
		case "required":
			return decode(path, v, name, "a list of names", &d.Required)
		case "defaults":
			return decode(path, v, name, "values by label", &d.Defaults)
		}
		return decode(path, v, name, "a word", texts[name])
	})
	return d, err
}

func readRule(path string, node *yaml.Node) (p schemas.Private, err error) {
	err = eachKey(path, node, "key of a pii rule", []string{"field", "rule", "grid"}, func(name string, v *yaml.Node) error {
		switch name {
		case "field":
			return decode(path, v, name, "a name", &p.Field)
		case "rule":
			return decode(path, v, name, "a word", &p.Rule)
		}
		return decode(path, v, name, "a number of degrees", &p.Grid)
	})
	return p, err
}

func decode(path string, node *yaml.Node, name, want string, into any) error {
	if err := node.Decode(into); err != nil {
		return at(path, node, "%s must be %s", name, want)
	}
	return nil
}
