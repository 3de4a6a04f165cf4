package jsonout

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

type inner struct {
	At    time.Time  `json:"at"`
	Ended *time.Time `json:"ended,omitempty"`
	Never time.Time  `json:"never,omitzero"`
}

// TestTimesHaveNineDigits finds times wherever they are in a value.
func TestTimesHaveNineDigits(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 120e6, time.UTC)
	vienna := at.In(time.FixedZone("", 3600))
	v := map[string]any{
		"a": inner{At: at, Ended: &at}, "b": []inner{{At: vienna}}, "c": map[string]time.Time{"x": at.Truncate(time.Second)},
		"d": &at, "e": []any{at, nil, "2026-11-20T12:00:00Z"}, "f": json.RawMessage(`{"at": "2026-11-20T12:00:00Z"}`),
	}
	want := `{"a":{"at":"2026-11-20T12:00:00.120000000Z","ended":"2026-11-20T12:00:00.120000000Z"},"b":[{"at":"2026-11-20T13:00:00.120000000+01:00"}],"c":{"x":"2026-11-20T12:00:00.000000000Z"},` +
		`"d":"2026-11-20T12:00:00.120000000Z","e":["2026-11-20T12:00:00.120000000Z",null,"2026-11-20T12:00:00Z"],"f":{"at":"2026-11-20T12:00:00Z"}}`
	if got, err := Marshal(v); string(got) != want || err != nil {
		t.Errorf("%s, %v\nexpected %s", got, err, want)
	}
	if got := Time(vienna); got != "2026-11-20T12:00:00.120000000Z" {
		t.Errorf("Time is %s", got)
	}
}

// TestAsEncodingJSON compares with encoding/json what is not a time.
func TestAsEncodingJSON(t *testing.T) {
	t.Parallel()
	type embedded struct {
		N int64 `json:"n,string"`
	}
	type all struct {
		embedded
		Nil   []string          `json:"nil"`
		Map   map[string]int    `json:"map"`
		None  map[string]string `json:"none,omitempty"`
		Bytes []byte            `json:"bytes"`
		Text  string            `json:"text"`
		F     float64           `json:"f"`
		Raw   json.RawMessage   `json:"raw,omitempty"`
		Any   any               `json:"any"`
		Dur   time.Duration     `json:"dur"`
		Ptr   *int              `json:"ptr"`
		Zero  int               `json:"zero,omitempty"`
		Same  string
	}
	for name, v := range map[string]any{
		"zero": all{}, "values": all{embedded: embedded{7}, Nil: []string{}, Map: map[string]int{"b": 1, "a": 2}, Bytes: []byte("x"), Text: "<&>\u2028\x1b\"", F: 1e21,
			Raw: json.RawMessage(` {"a" : [1.50, 12345678901234567890]}`), Any: []any{1, "2"}, Dur: time.Second},
		"nil": nil, "small": 1e-9, "text": "é",
	} {
		t.Run(name, func(t *testing.T) {
			var want bytes.Buffer
			e := json.NewEncoder(&want)
			e.SetEscapeHTML(false)
			if err := e.Encode(v); err != nil {
				t.Fatal(err)
			}
			var got, indented strings.Builder
			if err := Write(&got, v); err != nil || got.String() != want.String() {
				t.Errorf("%s: %s, %v\nexpected %s", name, got.String(), err, want.String())
			}
			want.Reset()
			e.SetIndent("", "  ")
			if err := e.Encode(v); err != nil {
				t.Fatal(err)
			}
			if err := WriteIndented(&indented, v); err != nil || indented.String() != want.String() {
				t.Errorf("%s: %s, %v\nexpected %s", name, indented.String(), err, want.String())
			}
		})
	}
	if _, err := Marshal(math.NaN()); err == nil {
		t.Error("NaN was written")
	}
	if err := Write(&bytes.Buffer{}, func() {}); err == nil {
		t.Error("a function was written")
	}
}
