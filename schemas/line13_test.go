package schemas

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// sourced is a topic whose fields are taken from other names.
func sourced(rules ...Private) *Topic {
	t := NewTopic("trail", Field{Name: "event_name", Type: TypeString, From: "eventName"}, Field{Name: "repo_name", Type: TypeLowCardinality, From: "repo.name"},
		Field{Name: "stream", Type: TypeString, From: "@stream"}, Field{Name: "took", Type: TypeInt64, From: "stats.took"})
	t.PII = rules
	return &t
}

// Issue 13, line 13: a promoted field takes any JSON path, in every way an event comes.
func TestLine13FieldsFromPaths(t *testing.T) {
	topic := sourced()
	if err := topic.Validate(); err != nil {
		t.Fatal(err)
	}
	got := func(e *Event) string {
		b := NewFrameBuilder(topic)
		b.Append(e, 1, NewID(1))
		f, payload := b.Encode()
		var r FrameReader
		if err := r.Open(payload, topic, f.Schema); err != nil {
			t.Fatal(err)
		}
		back := r.Event(0)
		var text strings.Builder
		for i := range back.Attrs {
			fmt.Fprintf(&text, "%s=%s ", back.Attrs[i].Key, back.Attrs[i].Text())
		}
		return text.String()
	}
	parsed := func(line string) *Event {
		e, err := EventKeys{Topic: topic}.ParseJSON([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		return &e
	}
	want := "event_name=PutObject repo_name=a/b stream=stdout took=7 "
	for name, e := range map[string]*Event{
		"JSON":              parsed(`{"eventName":"PutObject","repo":{"name":"a/b"},"@stream":"stdout","stats":{"took":7}}`),
		"by their own name": parsed(`{"event_name":"PutObject","repo_name":"a/b","stream":"stdout","took":7}`),
		"Go":                {Attrs: []Attr{String("@stream", "stdout"), Int64("stats.took", 7), String("eventName", "PutObject"), String("repo.name", "a/b")}},
		"above the limit":   parsed(`{` + manyKeys(300) + `"eventName":"PutObject","repo":{"name":"a/b"},"@stream":"stdout","stats":{"took":7}}`),
	} {
		if text := got(e); !strings.HasPrefix(text, want) || name != "above the limit" && text != want {
			t.Errorf("%s: %.200s", name, text)
		}
	}
	// What does not fit stays as it came.
	if text := got(parsed(`{"stats":{"took":"long"}}`)); !strings.Contains(text, "stats.took=long") {
		t.Error(text)
	}
	// The lane is the same by either name.
	topic.LaneBy = []string{"repo_name"}
	a, b := parsed(`{"repo":{"name":"a/b"}}`), parsed(`{"repo_name":"a/b"}`)
	if one, other := LaneOf(topic, a, "x"), LaneOf(topic, b, "y"); one != other {
		t.Errorf("lanes %d and %d", one, other)
	}
}

// The same: a privacy rule holds for a value under both names of its field, in
// events, in dead letters and in what is cleared later.
func TestLine13RulesHoldForBothNames(t *testing.T) {
	const line = `{"eventName":"CLEAR","repo":{"name":"CLEAR"},"@stream":"open","stats":{"took":1}}`
	for _, fields := range [][2]string{{"event_name", "repo_name"}, {"eventName", "repo.name"}, {"attributes.event_name", "repo_name"}} {
		topic := sourced(Private{Field: fields[0], Rule: PrivacyHash}, Private{Field: fields[1], Rule: PrivacyDrop})
		if err := topic.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{line, `{"event_name":"CLEAR","repo_name":"CLEAR"}`} {
			e, raw := ruled(t, topic, EventKeys{}, []byte(text))
			if strings.Contains(string(raw), "CLEAR") || strings.Contains(fmt.Sprint(e), "CLEAR") {
				t.Errorf("%v: %s is stored as %v", fields, text, e)
			}
			if clean, ok := NewPrivacy(topic, privacyKey).Clean([]byte(text)); !ok || strings.Contains(string(clean), "CLEAR") {
				t.Errorf("%v: a dead letter of %s keeps %s", fields, text, clean)
			}
		}
		set, where := topic.Clear(fields[:])
		for _, want := range []string{"event_name", "repo_name", "eventname", "repo.name"} {
			if !strings.Contains(set, want) || !strings.Contains(where, want) {
				t.Errorf("%v: %s is not cleared", fields, want)
			}
		}
	}
}

// What cannot be a source is refused, and a source stays.
func TestLine13SourcesAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		fields []Field
		says   string
	}{
		"a column's word":  {[]Field{{Name: "a", Type: TypeString, From: "msg"}}, "every topic has"},
		"a column":         {[]Field{{Name: "a", Type: TypeString, From: "user_id"}}, "every topic has"},
		"its own name":     {[]Field{{Name: "a", Type: TypeString, From: "a"}}, "its own name"},
		"another field":    {[]Field{{Name: "a", Type: TypeString, From: "b"}, {Name: "b", Type: TypeString}}, "a field of its own"},
		"twice":            {[]Field{{Name: "a", Type: TypeString, From: "x"}, {Name: "b", Type: TypeString, From: "x"}}, "both taken from"},
		"too long":         {[]Field{{Name: "a", Type: TypeString, From: strings.Repeat("x", MaxAttrKeyBytes+1)}}, "bytes"},
		"hash of a number": {[]Field{{Name: "a", Type: TypeInt64, From: "x"}}, "makes text"},
	} {
		topic := NewTopic("app", c.fields...)
		topic.PII = []Private{{Field: "x", Rule: PrivacyHash}}
		if err := topic.Validate(); !errors.Is(err, ErrTopic) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	topic := sourced()
	want := *topic
	want.Fields = []Field{{Name: "event_name", Type: TypeString, From: "name"}}
	if _, err := topic.Evolve(want); !errors.Is(err, ErrTopicChange) {
		t.Errorf("a source changes: %v", err)
	}
	want.Fields = []Field{topic.Fields[0], {Name: "more", Type: TypeString, From: "a.b"}}
	if next, err := topic.Evolve(want); err != nil || next.Version != topic.Version+1 || next.Fields[len(next.Fields)-1].From != "a.b" {
		t.Errorf("%+v, %v", next, err)
	}
}
