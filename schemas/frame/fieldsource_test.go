package frame

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
	"github.com/almanac-events/almanac/schemas/rawjson"
	"github.com/almanac-events/almanac/schemas/sql"
)

// sourced is a topic whose fields are taken from other names.
func sourced(rules ...schemas.Private) *schemas.Topic {
	t := schemas.NewTopic("trail", schemas.Field{Name: "event_name", Type: schemas.TypeString, From: "eventName"}, schemas.Field{Name: "repo_name", Type: schemas.TypeLowCardinality, From: "repo.name"},
		schemas.Field{Name: "stream", Type: schemas.TypeString, From: "@stream"}, schemas.Field{Name: "took", Type: schemas.TypeInt64, From: "stats.took"})
	t.PII = rules
	return &t
}

// A promoted field takes any JSON path, in every way an event comes.
func TestFieldsFromPaths(t *testing.T) {
	topic := sourced()
	if err := topic.Validate(); err != nil {
		t.Fatal(err)
	}
	got := func(e *schemas.Event) string {
		back := framed(t, topic, e).Event(0)
		var text strings.Builder
		for i := range back.Attrs {
			fmt.Fprintf(&text, "%s=%s ", back.Attrs[i].Key, back.Attrs[i].Text())
		}
		return text.String()
	}
	parsed := func(line string) *schemas.Event {
		e, err := rawjson.Keys{Topic: topic}.Parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		return &e
	}
	want := "event_name=PutObject repo_name=a/b stream=stdout took=7 "
	for name, e := range map[string]*schemas.Event{
		"JSON":              parsed(`{"eventName":"PutObject","repo":{"name":"a/b"},"@stream":"stdout","stats":{"took":7}}`),
		"by their own name": parsed(`{"event_name":"PutObject","repo_name":"a/b","stream":"stdout","took":7}`),
		"Go":                {Attrs: []schemas.Attr{schemas.String("@stream", "stdout"), schemas.Int64("stats.took", 7), schemas.String("eventName", "PutObject"), schemas.String("repo.name", "a/b")}},
		"above the limit":   parsed(`{` + manyKeys(300) + `"eventName":"PutObject","repo":{"name":"a/b"},"@stream":"stdout","stats":{"took":7}}`),
	} {
		t.Run(name, func(t *testing.T) {
			if text := got(e); !strings.HasPrefix(text, want) || name != "above the limit" && text != want {
				t.Errorf("%s: %.200s", name, text)
			}
		})
	}
	// What does not fit stays as it came.
	if text := got(parsed(`{"stats":{"took":"long"}}`)); !strings.Contains(text, "stats.took=long") {
		t.Error(text)
	}
	// The lane is the same by either name.
	topic.LaneBy = []string{"repo_name"}
	a, b := parsed(`{"repo":{"name":"a/b"}}`), parsed(`{"repo_name":"a/b"}`)
	if one, other := schemas.LaneOf(topic, a, 1, "x"), schemas.LaneOf(topic, b, 1, "y"); one != other {
		t.Errorf("lanes %d and %d", one, other)
	}
}

// A privacy rule holds for a value under both names of its field, in
// events, in dead letters and in what is cleared later.
func TestRulesHoldForBothNames(t *testing.T) {
	const line = `{"eventName":"CLEAR","repo":{"name":"CLEAR"},"@stream":"open","stats":{"took":1}}`
	for _, fields := range [][2]string{{"event_name", "repo_name"}, {"eventName", "repo.name"}, {"attributes.event_name", "repo_name"}} {
		topic := sourced(schemas.Private{Field: fields[0], Rule: schemas.PrivacyHash}, schemas.Private{Field: fields[1], Rule: schemas.PrivacyDrop})
		if err := topic.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{line, `{"event_name":"CLEAR","repo_name":"CLEAR"}`} {
			e, raw := ruled(t, topic, rawjson.Keys{}, []byte(text))
			if strings.Contains(string(raw), "CLEAR") || strings.Contains(fmt.Sprint(e), "CLEAR") {
				t.Errorf("%v: %s is stored as %v", fields, text, e)
			}
			if clean, ok := privacy.New(topic, privacyKey).Clean([]byte(text)); !ok || strings.Contains(string(clean), "CLEAR") {
				t.Errorf("%v: a dead letter of %s keeps %s", fields, text, clean)
			}
		}
		set, where := sql.Clear(topic, fields[:])
		for _, want := range []string{"event_name", "repo_name", "eventname", "repo.name"} {
			if !strings.Contains(set, want) || !strings.Contains(where, want) {
				t.Errorf("%v: %s is not cleared", fields, want)
			}
		}
	}
}

// What cannot be a source is refused, and a source stays.
func TestSourcesAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		fields []schemas.Field
		says   string
	}{
		"a column's word":  {[]schemas.Field{{Name: "a", Type: schemas.TypeString, From: "msg"}}, "every topic has"},
		"a column":         {[]schemas.Field{{Name: "a", Type: schemas.TypeString, From: "user_id"}}, "every topic has"},
		"its own name":     {[]schemas.Field{{Name: "a", Type: schemas.TypeString, From: "a"}}, "its own name"},
		"another field":    {[]schemas.Field{{Name: "a", Type: schemas.TypeString, From: "b"}, {Name: "b", Type: schemas.TypeString}}, "a field of its own"},
		"twice":            {[]schemas.Field{{Name: "a", Type: schemas.TypeString, From: "x"}, {Name: "b", Type: schemas.TypeString, From: "x"}}, "both taken from"},
		"too long":         {[]schemas.Field{{Name: "a", Type: schemas.TypeString, From: strings.Repeat("x", schemas.MaxAttrKeyBytes+1)}}, "bytes"},
		"hash of a number": {[]schemas.Field{{Name: "a", Type: schemas.TypeInt64, From: "x"}}, "makes text"},
	} {
		t.Run(name, func(t *testing.T) {
			topic := schemas.NewTopic("app", c.fields...)
			topic.PII = []schemas.Private{{Field: "x", Rule: schemas.PrivacyHash}}
			if err := topic.Validate(); !errors.Is(err, schemas.ErrTopic) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	topic := sourced()
	want := *topic
	want.Fields = []schemas.Field{{Name: "event_name", Type: schemas.TypeString, From: "name"}}
	if _, err := topic.Evolve(want); !errors.Is(err, schemas.ErrTopicChange) {
		t.Errorf("a source changes: %v", err)
	}
	want.Fields = []schemas.Field{topic.Fields[0], {Name: "more", Type: schemas.TypeString, From: "a.b"}}
	if next, err := topic.Evolve(want); err != nil || next.Version != topic.Version+1 || next.Fields[len(next.Fields)-1].From != "a.b" {
		t.Errorf("%+v, %v", next, err)
	}
}
