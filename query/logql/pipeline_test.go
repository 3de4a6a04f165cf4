package logql

import (
	"maps"
	"strings"
	"testing"
)

// Stages change lines and labels as Loki's do.
func TestPipeline(t *testing.T) {
	t.Parallel()
	const text = `{"a":1.50,"b":{"c":"x","d":[1,"e"]},"level":"inner","n":null}`
	for src, want := range map[string]struct {
		line   string
		labels map[string]string // those that stages made; nil: the entry is left out
	}{
		`{} | json`: {text, map[string]string{"a": "1.50", "b_c": "x", "level_extracted": "inner"}},
		`{} | json e="b.d[1]", f="b.d", g="none"`:               {text, map[string]string{"e": "e", "f": `[1,"e"]`}},
		`{} | json | a > 1.4`:                                   {text, map[string]string{"a": "1.50", "b_c": "x", "level_extracted": "inner"}},
		`{} | json | a > 1.5`:                                   {},
		`{} | json | keep a`:                                    {text, map[string]string{"a": "1.50"}},
		`{} | json | drop a, b_c="x", level_extracted!="inner"`: {text, map[string]string{"level_extracted": "inner"}},
		`{} | json | line_format "{{.a}}-{{.b_c | ToUpper}}-{{.took}}-{{.nothing}}"`: {"1.50-X-250ms-", map[string]string{"a": "1.50", "b_c": "x", "level_extracted": "inner"}},
		`{} | line_format "{{__line__ | trunc 4}}"`:                                  {`{"a"`, map[string]string{}},
		`{} | label_format x=took, y="{{.service}}!"`:                                {text, map[string]string{"x": "250ms", "y": "api!"}},
		`{} | took > 200ms | took <= 0.25s`:                                          {text, map[string]string{}},
		`{} | took > 250ms`:                                                          {},
		`{} | size > 1KiB`:                                                           {text, map[string]string{}},
		`{} | size > 2KB`:                                                            {},
		`{} | service_name = "api" | detected_level =~ "inf."`:                       {text, map[string]string{}},
		`{} | nothing > 0`:                                                           {},
		`{} | nothing = ""`:                                                          {text, map[string]string{}},
		`{} |~ "\"a\":1" != "zzz"`:                                                   {text, map[string]string{}},
		`{} | logfmt`:                                                                {text, map[string]string{}},
		`{} | line_format "x=1 y=\"two words\" z= w" | logfmt`:                       {`x=1 y="two words" z= w`, map[string]string{"x": "1", "y": "two words"}},
		`{} | line_format "x=1 z=" | logfmt --keep-empty q="x"`:                      {`x=1 z=`, map[string]string{"q": "1"}},
		`{} | line_format "x=1 say\"hi\" z=5" | logfmt`:                              {`x=1 say"hi" z=5`, map[string]string{"x": "1", "z": "5"}},
		`{} | line_format "{\"a\":" | json`:                                          {`{"a":`, map[string]string{ErrorLabel: "JSONParserErr", DetailsLabel: "the line is not a JSON object"}},
		`{} | line_format "{\"a\":" | json | __error__=""`:                           {},
		`{} | line_format "{{printf \"%1000000d\" 1}}"`:                              {text, nil}, // an error, below
		`{} | line_format "plain" | json`:                                            {"plain", map[string]string{}},
	} {
		t.Run(src, func(t *testing.T) {
			t.Parallel()
			q, err := Parse(src)
			if err != nil {
				t.Fatal(err)
			}
			e := &Entry{Line: text, Stream: map[string]string{"topic": "app", "service": "api", "level": "info"}, Structured: map[string]string{"took": "250ms", "size": "1.5KB"}}
			kept, err := q.Log.Apply(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(src, "printf") {
				if !kept || e.Get(ErrorLabel) != "TemplateFormatErr" {
					t.Errorf("a template that makes a million digits: %v, %v", kept, e.Parsed)
				}
				return
			}
			if kept != (want.labels != nil) {
				t.Fatalf("kept: %v", kept)
			}
			if kept && (e.Line != want.line || !maps.Equal(e.Parsed, want.labels) && len(e.Parsed)+len(want.labels) > 0) {
				t.Errorf("%q %v, want %q %v", e.Line, e.Parsed, want.line, want.labels)
			}
		})
	}
}

func TestLabelName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"a": "a", "a.b-c": "a_b_c", "9a": "_9a", "": "", "é": "_", "A_9": "A_9", "k#2": "k_2"} {
		if got := LabelName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// A template cannot make more than a line may have, nor run for long.
func TestTemplatesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60<<10)
	for _, template := range []string{
		`{{Replace __line__ "x" "yyyy" -1}}`, `{{__line__}}{{__line__}}`, `{{printf "%099999d" 1}}`, `{{printf "%*d" 100000 1}}`, `{{$a := "xxxxxxxx"}}` + strings.Repeat(`{{$a = print $a $a}}`, 40), `{{html __line__}}`, `{{printf "` + strings.Repeat("%[1]s", 1500) + `" __line__}}`,
	} {
		q, err := Parse("{} | line_format `" + template + "`")
		if err != nil {
			t.Fatal(err)
		}
		e := &Entry{Line: long}
		if _, err := q.Log.Apply(t.Context(), e); err != nil || len(e.Line) > maxFormatted || e.Get(ErrorLabel) == "" {
			t.Errorf("%s: %v, %d bytes, %v", template, err, len(e.Line), e.Parsed)
		}
	}
}
