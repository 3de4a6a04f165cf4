package intake

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/almanac-events/almanac/schemas"
)

// JSON arrays, objects over several lines, and records inside a
// document are input; what is cut short or broken says so and where.
func TestJSONDocuments(t *testing.T) {
	long := strings.Repeat("x", 2*schemas.MaxEventBytes)
	for name, c := range map[string]struct {
		opts  Options
		input string
		want  string // records, then the end
	}{
		"an array":           {Options{Format: FormatJSON}, "[{\"a\":1},\n {\"a\":2}]\n", `1+1 [a]="1"; 2+1 [a]="2"; EOF`},
		"in ndjson":          {Options{Format: FormatNDJSON}, " [\n{\"a\":1},{\"a\":[2,\"]\"]}]", `2+1 [a]="1"; 2+1 [a]="[2,\"]\"]"; EOF`},
		"arrays, objects":    {Options{Format: FormatJSON}, `{"a":1}[{"a":2}] {"a":3}`, `1+1 [a]="1"; 1+1 [a]="2"; 1+1 [a]="3"; EOF`},
		"pretty":             {Options{Format: FormatJSON}, "{\n \"a\": 1\n}\n{\n \"a\": \"}\\\"\"\n}", `1+3 [a]="1"; 4+3 [a]="}\""; EOF`},
		"empty":              {Options{Format: FormatJSON}, "[ ]", `EOF`},
		"nothing":            {Options{Format: FormatJSON}, " \n", `EOF`},
		"a mark":             {Options{Format: FormatJSON}, "\xef\xbb\xbf[{\"a\":1}]", `1+1 [a]="1"; EOF`},
		"a number":           {Options{Format: FormatJSON}, "[12,{\"a\":1}]", `1+1 error; 1+1 [a]="1"; EOF`},
		"a bad element":      {Options{Format: FormatJSON}, "[{\"a\":x},\n{\"a\":1}]", `1+1 error; 2+1 [a]="1"; EOF`},
		"too long":           {Options{Format: FormatJSON, MaxRecordBytes: 100}, `[{"a":"` + long + `"},{"a":1}]`, `1+1 too long; 1+1 [a]="1"; EOF`},
		"cut short":          {Options{Format: FormatJSON}, "[{\"a\":1},\n{\"a\":", `1+1 [a]="1"; cut short`},
		"not closed":         {Options{Format: FormatJSON}, "[{\"a\":1}\n", `1+1 [a]="1"; line 1 is not closed`},
		"no comma":           {Options{Format: FormatJSON}, "[{\"a\":1}\n{\"a\":2}]", `1+1 [a]="1"; line 2 has '{' where a comma`},
		"a comma too many":   {Options{Format: FormatJSON}, "[{\"a\":1},]", `1+1 [a]="1"; comma before`},
		"inside":             {Options{Format: FormatJSON, Records: "Records"}, `{"x":{"Records":[{"a":0}]},"Records":[{"a":1},{"a":2}],"y":[3]}`, `1+1 [a]="1"; 1+1 [a]="2"; EOF`},
		"deep inside":        {Options{Format: FormatJSON, Records: "b.c"}, "{\"b\":{\"d\":\"}\",\"c\":[{\"a\":1}]},\"c\":[{}]}\n{\"b\":{\"c\":[{\"a\":2}]}}", `1+1 [a]="1"; 2+1 [a]="2"; EOF`},
		"not inside":         {Options{Format: FormatJSON, Records: "b"}, `{"c":[{"a":1}]}`, `EOF`},
		"inside, no array":   {Options{Format: FormatJSON, Records: "b"}, `{"b":{"a":1}}`, `"b" in line 1 is not an array`},
		"inside of an array": {Options{Format: FormatJSON, Records: "b"}, `[{"a":1}]`, `an object with "b" was expected`},
		"a line of NDJSON":   {Options{Format: FormatNDJSON}, "{\"a\":1}\n[2]\n{\"a\":3}\n", `1+1 [a]="1"; 2+1 error; 3+1 [a]="3"; EOF`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, slow := range []bool{false, true} {
				var in io.Reader = strings.NewReader(c.input)
				if slow {
					in = iotest.OneByteReader(in)
				}
				r := NewReader(in, c.opts)
				var got []string
				for {
					rec, err := r.Next()
					if err != nil {
						if !errors.Is(err, io.EOF) && !errors.Is(err, ErrSyntax) {
							t.Errorf("%s: %v", name, err)
						}
						got = append(got, err.Error())
						break
					}
					switch {
					case errors.Is(rec.Err, ErrTooLong) && len(rec.Raw) <= c.opts.MaxRecordBytes:
						got = append(got, fmt.Sprintf("%d+%d too long", rec.Line, rec.Lines))
					case rec.Err != nil:
						got = append(got, fmt.Sprintf("%d+%d error", rec.Line, rec.Lines))
					default:
						got = append(got, show(rec))
					}
				}
				want := strings.Split(c.want, "; ")
				ok := len(got) == len(want)
				for i := range want {
					ok = ok && (got[i] == want[i] || i == len(want)-1 && strings.Contains(got[i], want[i]))
				}
				if !ok {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// Any field of a record fills a column, in every format, and not one whose
// rule would be lost.
func TestColumns(t *testing.T) {
	topic := schemas.NewTopic("trail", schemas.Field{Name: "event_name", Type: schemas.TypeString})
	columns := map[string]string{"eventName": "event_name", "who.sub": schemas.ColService, "kind": schemas.ColType}
	want := `1+1 service="s" type="k" [event_name]="Put" [type]="other"`
	for name, c := range map[string]struct{ format, input string }{
		"ndjson": {FormatNDJSON, `{"eventName":"Put","who":{"sub":"s"},"type":"other","kind":"k"}`},
		"json":   {FormatJSON, `[{"eventName":"Put","who":{"sub":"s"},"type":"other","kind":"k"}]`},
		"logfmt": {FormatLogfmt, `eventName=Put who.sub=s type=other kind=k`},
		"csv":    {FormatCSV, "eventName,who.sub,type,kind\nPut,s,other,k\n"},
	} {
		t.Run(name, func(t *testing.T) {
			rec, err := NewReader(strings.NewReader(c.input), Options{Format: c.format, Columns: columns, Topic: &topic}).Next()
			got := show(rec)
			if name == "csv" {
				got = strings.Replace(got, "2+1", "1+1", 1)
			}
			if err != nil || got != want {
				t.Errorf("%s: %s (%v, %v), want %s", name, got, err, rec.Err, want)
			}
		})
	}
	private := topic
	private.PII = []schemas.Private{{Field: "who.sub", Rule: schemas.PrivacyHash}}
	for name, o := range map[string]Options{
		"unknown":     {Columns: map[string]string{"x": "no_such"}, Topic: &topic},
		"time":        {Columns: map[string]string{"x": "ts"}},
		"user":        {Columns: map[string]string{"x": "user_id"}},
		"twice":       {Columns: map[string]string{"x": "type", "y": "type"}},
		"in clear":    {Columns: columns, Topic: &private},
		"no document": {Records: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			o.Format = FormatNDJSON
			if err := o.Validate(); !errors.Is(err, ErrOptions) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if _, err := NewReader(strings.NewReader("a,b\n1,2\n"), Options{Format: FormatCSV, Columns: map[string]string{"x": "type"}}).Next(); !errors.Is(err, ErrHeader) {
		t.Errorf("a column that is not in the header: %v", err)
	}
}
