package query

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// Each cell is read back as it was, whatever it holds.
func TestCSV(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app", schemas.Field{Name: "took", Type: schemas.TypeFloat64})
	topic.Version = 1
	event := json.RawMessage(`{"ts":"2026-11-20T10:00:00.000000000Z","message":"a \"b\", c\nd","took":1.5,"user_id":null,"attributes":{"a.b":"x,y","it's":"=1"},"pos":7}`)
	for name, c := range map[string]struct{ fields, want []string }{
		"fields":         {[]string{"ts", " message", "took", "user_id", "attributes.a.b", "attributes['a.b']", "attributes.none", "pos"}, []string{"2026-11-20T10:00:00.000000000Z", "a \"b\", c\nd", "1.5", "", "x,y", "x,y", "", "7"}},
		"all attributes": {[]string{"attributes"}, []string{`{"a.b":"x,y","it's":"=1"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			w, err := NewCSV(&out, &topic, c.fields)
			if err == nil {
				err = w.Write([]json.RawMessage{event, event})
			}
			rows, readErr := csv.NewReader(strings.NewReader(out.String())).ReadAll()
			if err != nil || readErr != nil || len(rows) != 3 {
				t.Fatalf("%v %v: %q", err, readErr, out.String())
			}
			if !slices.Equal(rows[1], c.want) || !slices.Equal(rows[2], c.want) || len(rows[0]) != len(c.fields) || rows[0][0] != c.fields[0] {
				t.Errorf("%q, want %q", rows, c.want)
			}
		})
	}
	var out strings.Builder
	if _, err := NewCSV(&out, &topic, nil); err != nil || !strings.HasPrefix(out.String(), "ts,id,level,") || !strings.HasSuffix(out.String(), "took,month,shard,pos\n") {
		t.Errorf("%v: %q", err, out.String())
	}
}
