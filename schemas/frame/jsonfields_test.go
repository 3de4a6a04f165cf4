package frame

import (
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

func TestJSONFieldsStayWhole(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("trail", schemas.Field{Name: "before", Type: schemas.TypeJSON}, schemas.Field{Name: "later", Type: schemas.TypeJSON, From: "change.after"})
	for line, want := range map[string]map[string]string{
		`{"before":{"name":"x","in":{"a": 1}},"k":{"l":2}}`: {"before": `{"name":"x","in":{"a":1}}`, "k.l": "2"},
		`{"change":{"after":{"a":[1, 2]},"by":"u"}}`:        {"later": `{"a":[1,2]}`, "change.by": "u"},
		`{"before":"a text"}`:                               {"before": "a text"}, // no JSON: an attribute
		`{"before":null}`:                                   {},
		`{"before":7}`:                                      {"before": "7"},
	} {
		keys := rawjson.Keys{Topic: &topic}
		e, err := keys.Parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		b := NewBuilder(&topic)
		b.Append(&e, atNoon.UnixNano(), schemas.NewID(1))
		_, payload := b.Encode()
		var r Reader
		if err := r.Open(payload, &topic, 1); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, a := range r.Event(0).Attrs {
			got[a.Key] = a.Text()
		}
		if len(got) != len(want) {
			t.Errorf("%s gives %v, want %v", line, got, want)
		}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s gives %v, want %v", line, got, want)
			}
		}
		if column := r.Text(r.ColumnIndex("before"), 0); strings.Contains(line, "a text") && len(column) > 0 {
			t.Errorf("%s is in the column: %s", line, column)
		}
	}
}
