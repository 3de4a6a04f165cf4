package logql

import "testing"

// FuzzParse: whatever is sent, it is read or refused, and what is read can be applied to a line.
func FuzzParse(f *testing.F) {
	for _, src := range []string{
		`{a="b"} |= "x" | json | a > 5ms or b = "y" | line_format "{{.a}}"`, `sum by (a) (rate({a=~"b.*"} | unwrap bytes(x) [5m] offset 1h)) > bool 1`, `topk(5, vector(1))`, `{} | logfmt --strict a="b[0]" | drop a, b="c"`,
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		q, err := Parse(src)
		if err != nil || q.Log == nil {
			return
		}
		e := &Entry{Line: `{"a":1}`, Stream: map[string]string{"a": "b"}, Structured: map[string]string{"x": "5KB"}}
		if _, err := q.Log.Apply(t.Context(), e); err != nil {
			t.Error(err)
		}
		if len(e.Line) > maxFormatted {
			t.Errorf("%s makes a line of %d bytes", src, len(e.Line))
		}
		q.Log.selection(fieldsOf(&topicApp, nil))
	})
}
