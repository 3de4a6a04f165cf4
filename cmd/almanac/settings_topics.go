package main

import (
	"time"

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

func readTopic(path string, node *yaml.Node) (t schemas.Topic, err error) {
	known := []string{"name", "kind", "lanes", "lane_by", "fields", "rotate", "keep_days", "anonymise", "pii", "sql_fresh", "documents", "once_by"}
	err = eachKey(path, node, "key of a topic", known, func(name string, v *yaml.Node) error {
		switch name {
		case "name":
			return decode(path, v, name, "a name", &t.Name)
		case "kind":
			return decode(path, v, name, "a word", &t.Kind)
		case "lanes":
			return decode(path, v, name, "a number", &t.Lanes)
		case "lane_by":
			t.LaneBy = []string{} // given and empty: the producer's id
			return decode(path, v, name, "a list of fields", &t.LaneBy)
		case "once_by":
			return decode(path, v, name, "a list of columns", &t.OnceBy)
		case "keep_days":
			return decode(path, v, name, "a number of days", &t.KeepDays)
		case "anonymise":
			t.Anonymise, err = readAnonymise(path, v)
			return err
		case "pii":
			t.PII, err = readPrivacy(path, v)
			return err
		case "rotate":
			t.Rotate, err = readRotation(path, v)
			return err
		case "documents":
			return decode(path, v, name, "settings of documents", &t.Documents)
		case "sql_fresh":
			t.SQLFresh, err = readLength(path, v, name)
			return err
		}
		t.Fields, err = readFields(path, v)
		return err
	})
	return t, err
}

// readLength reads a length of time.
func readLength(path string, v *yaml.Node, name string) (time.Duration, error) {
	var text string
	if err := decode(path, v, name, "a length of time, such as 10s", &text); err != nil {
		return 0, err
	}
	d, ok := parseSpan(text)
	if !ok {
		return 0, at(path, v, "%s is %q: expected a length of time, such as 10s", name, text)
	}
	return d, nil
}

func readFields(path string, list *yaml.Node) ([]schemas.Field, error) {
	if list.Kind != yaml.SequenceNode {
		return nil, at(path, list, "fields must be a list of {name: …, type: …, from: …}")
	}
	fields := make([]schemas.Field, len(list.Content))
	for i, node := range list.Content {
		err := eachKey(path, node, "key of a field", []string{"name", "type", "from"}, func(name string, v *yaml.Node) error {
			switch name {
			case "name":
				return decode(path, v, name, "a name", &fields[i].Name)
			case "from":
				return decode(path, v, name, "the name, or dotted path, that events bring it by", &fields[i].From)
			}
			return decode(path, v, name, "a type", &fields[i].Type)
		})
		if err != nil {
			return nil, err
		}
	}
	return fields, nil
}

func readAnonymise(path string, node *yaml.Node) (a schemas.Anonymise, err error) {
	err = eachKey(path, node, "key of anonymise", []string{"after_days", "fields"}, func(name string, v *yaml.Node) error {
		if name == "after_days" {
			return decode(path, v, name, "a number of days", &a.AfterDays)
		}
		return decode(path, v, name, "a list of fields", &a.Fields)
	})
	return a, err
}

func readPrivacy(path string, list *yaml.Node) ([]schemas.Private, error) {
	if list.Kind != yaml.SequenceNode {
		return nil, at(path, list, "pii must be a list of {field: …, rule: …}")
	}
	rules := make([]schemas.Private, len(list.Content))
	for i, node := range list.Content {
		p := &rules[i]
		err := eachKey(path, node, "key of a pii rule", []string{"field", "rule", "grid"}, func(name string, v *yaml.Node) error {
			switch name {
			case "field":
				return decode(path, v, name, "a name", &p.Field)
			case "rule":
				return decode(path, v, name, "a word", &p.Rule)
			}
			return decode(path, v, name, "a number of degrees", &p.Grid)
		})
		if err != nil {
			return nil, err
		}
	}
	return rules, nil
}

func readRotation(path string, node *yaml.Node) (r schemas.Rotation, err error) {
	err = eachKey(path, node, "rotation threshold", []string{"rows", "bytes", "span"}, func(name string, v *yaml.Node) error {
		var text string
		if err := decode(path, v, name, "one value", &text); err != nil {
			return err
		}
		ok := true
		switch name {
		case "rows":
			return decode(path, v, name, "a number", &r.Rows)
		case "bytes":
			var n int64
			n, ok = parseSize(text)
			r.Bytes = uint64(max(n, 0))
		case "span":
			var d time.Duration
			d, ok = parseSpan(text)
			r.Span = d
		}
		if !ok {
			return at(path, v, "%s is %q, it must be like 2GiB (bytes) or 24h (span)", name, text)
		}
		return nil
	})
	return r, err
}

func decode(path string, node *yaml.Node, name, want string, into any) error {
	if err := node.Decode(into); err != nil {
		return at(path, node, "%s must be %s", name, want)
	}
	return nil
}
