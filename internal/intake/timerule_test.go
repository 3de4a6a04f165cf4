package intake

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// A record without a time gets now, unless a field or a form is named; either can be said. One that cannot be read
// refuses the record in every case. What may have been meant is offered.
func TestTimeRule(t *testing.T) {
	const named, now = "2026-11-05T10:00:00Z", "now"
	for name, c := range map[string]struct {
		o     Options
		in    string
		want  string // the time, now, or a part of the refusal
		other string
	}{
		"our word":                       {Options{Format: FormatNDJSON}, `{"ts":"` + named + `"}`, named, ""},
		"none":                           {Options{Format: FormatNDJSON}, `{"a":1}`, now, ""},
		"null":                           {Options{Format: FormatNDJSON}, `{"ts":null}`, now, ""},
		"null, and another word":         {Options{Format: FormatNDJSON}, `{"ts":null,"@timestamp":"` + named + `"}`, named, ""},
		"MongoDB":                        {Options{Format: FormatNDJSON}, `{"ts":{"$date":"` + named + `"}}`, named, ""},
		"MongoDB, milliseconds":          {Options{Format: FormatNDJSON}, `{"ts":{"$date":{"$numberLong":"1793872800000"}}}`, named, ""},
		"MongoDB, a number":              {Options{Format: FormatNDJSON}, `{"timestamp":{"$date":1793872800000}}`, named, ""},
		"MongoDB, a named field":         {Options{Format: FormatNDJSON, TsField: "at"}, `{"at":{"$date":"` + named + `"}}`, named, ""},
		"another object":                 {Options{Format: FormatNDJSON}, `{"time":{"start":1}}`, "is an object", ""},
		"Fluent Bit":                     {Options{Format: FormatNDJSON}, `{"date":1793872800.5,"log":"x"}`, now, "date"},
		"GitHub":                         {Options{Format: FormatNDJSON}, `{"created_at":"` + named + `"}`, now, "created_at"},
		"a date that is none":            {Options{Format: FormatNDJSON}, `{"date":"tomorrow"}`, now, ""},
		"required":                       {Options{Format: FormatNDJSON, RequireTime: true}, `{"date":"` + named + `"}`, `"date" may`, ""},
		"a named field":                  {Options{Format: FormatNDJSON, TsField: "at"}, `{"at":"` + named + `"}`, named, ""},
		"a named field, not there":       {Options{Format: FormatNDJSON, TsField: "at"}, `{"b":1}`, `no "at"`, ""},
		"or else now":                    {Options{Format: FormatNDJSON, TsField: "at", Untimed: true}, `{"b":1}`, now, ""},
		"or else now, and it is none":    {Options{Format: FormatNDJSON, TsField: "at", Untimed: true}, `{"at":"noon"}`, "noon", ""},
		"several, the second":            {Options{Format: FormatNDJSON, TsField: "at,b"}, `{"b":"` + named + `"}`, named, ""},
		"several, both":                  {Options{Format: FormatNDJSON, TsField: "at,b"}, `{"b":"2020-01-01T00:00:00Z","at":"` + named + `"}`, named, ""},
		"several, both in their order":   {Options{Format: FormatNDJSON, TsField: "at,b"}, `{"at":"` + named + `","b":"2020-01-01T00:00:00Z"}`, named, ""},
		"several, none":                  {Options{Format: FormatNDJSON, TsField: "at,b"}, `{"c":1}`, `no "at" or "b"`, ""},
		"journald":                       {Options{Format: FormatNDJSON, TsField: "__REALTIME_TIMESTAMP"}, `{"__REALTIME_TIMESTAMP":"1793872800000000"}`, named, ""},
		"csv, several":                   {Options{Format: FormatCSV, TsField: "at,b"}, "b,c\n" + named + ",1\n", named, ""},
		"csv, or else now":               {Options{Format: FormatCSV, TsField: "at,b", Untimed: true}, "b,c\n,1\n", now, ""},
		"logfmt":                         {Options{Format: FormatLogfmt, TsField: "at"}, "at=" + named + " x=1", named, ""},
		"text, a form":                   {Options{Format: FormatText, TsFormat: "rfc3339"}, "no time here", "rfc3339 looks like", ""},
		"text, a form, or else now":      {Options{Format: FormatText, TsFormat: "rfc3339", Untimed: true}, "no time here", now, ""},
		"ndjson, a form, or else now":    {Options{Format: FormatNDJSON, TsFormat: "date", Untimed: true}, `{"a":1}`, now, ""},
		"ndjson, a form, not so written": {Options{Format: FormatNDJSON, TsFormat: "date", Untimed: true}, `{"ts":"noon"}`, "noon", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rec, err := NewReader(strings.NewReader(c.in), c.o).Next()
			if err != nil {
				t.Fatal(err)
			}
			got := now
			if rec.Err != nil {
				got = rec.Err.Error()
			} else if !rec.Event.Time.IsZero() {
				got = rec.Event.Time.UTC().Format(time.RFC3339)
			}
			if got != c.want && (rec.Err == nil || !strings.Contains(got, c.want)) || rec.Err == nil && rec.OtherTime != c.other {
				t.Errorf("%s, offered %q; want %s, offered %q", got, rec.OtherTime, c.want, c.other)
			}
		})
	}
	if err := (&Options{Format: FormatNDJSON, RequireTime: true, Untimed: true}).Validate(); !errors.Is(err, ErrOptions) {
		t.Errorf("required of all and of none: %v", err)
	}
}

// A line end inside a cell is kept as it is, whatever ends the rows.
func TestLineEndsInsideCells(t *testing.T) {
	for in, want := range map[string]string{
		"message,n\r\n\"a\r\nb\r\n\r\nc\",1\r\n": "a\r\nb\r\n\r\nc", "message,n\n\"a\nb\",1\n": "a\nb", "message,n\r\n\"a\nb\r\nc\rd\",1\r\n": "a\nb\r\nc\rd", "message\r\n\"x\r\n\"": "x\r\n",
	} {
		r := NewReader(strings.NewReader(in), Options{Format: FormatCSV})
		rec, err := r.Next()
		if err != nil || rec.Err != nil || rec.Event.Message != want {
			t.Errorf("%q: %q, expected %q: %v %v", in, rec.Event.Message, want, err, rec.Err)
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%q: then %v", in, err)
		}
	}
}
