package jsonout

import (
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// layout is RFC 3339 with nine digits.
const layout = "2006-01-02T15:04:05.000000000Z07:00"

// Time returns a time as answers have it, in UTC.
func Time(t time.Time) string { return t.UTC().Format(layout) }

var times = json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
	return e.WriteToken(jsontext.String(t.Format(layout)))
})

// options are those of encoding/json, but for what doc.go says.
var options = json.JoinOptions(jsonv1.DefaultOptionsV1(), json.WithMarshalers(times), jsontext.EscapeForHTML(false))

// Marshal returns the JSON of a value.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, options) }

// Write writes the JSON of a value, on one line that it ends.
func Write(w io.Writer, v any) error { return write(w, v, options) }

// WriteIndented writes the JSON of a value for people, on several lines.
func WriteIndented(w io.Writer, v any) error {
	return write(w, v, json.JoinOptions(options, jsontext.WithIndent("  ")))
}

func write(w io.Writer, v any, o json.Options) error {
	text, err := json.Marshal(v, o)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
