package texts

import (
	"context"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
)

// TestAsPrometheus compares what is filled in with what Prometheus fills in.
func TestAsPrometheus(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"instance": "web-1.example.com:9100", "job": "node", "address": "10.0.0.1:80", "quoted": "{{ $value }}"}
	for _, text := range []string{
		"", "plain", "{{ $value }}", "{{ .Value }}", "{{$labels.instance}} of {{ .Labels.job }}", "{{ $labels.nothing }}", "{{- $value -}}  x", "{{ $labels.quoted }}",
		"{{ $value | humanize }}", "{{ humanize1024 $value }}", "{{ $value | humanizePercentage }}", "{{ $value | humanizeDuration }}", "{{ $value | humanizeTimestamp }}",
		`{{ printf "%.2f" $value }}`, `{{ $value | printf "%8.1f|%%" }}`, `{{ printf "%s/%q" $labels.job $labels.instance }}`,
		"{{ if gt $value 100.0 }}many{{ else if eq $labels.job `node` }}of node{{ else }}few{{ end }}", "{{ with $labels.job }}{{ . }}{{ end }}",
		`{{ $labels.job | toUpper | toLower }}`, "{{ stripPort $labels.instance }} {{ stripDomain $labels.instance }} {{ stripDomain $labels.address }} {{ stripDomain `a.b` }}",
		`{{ title "the node's API of web-1" }}`, "{{ $labels.job | title }}", "{{ match `^web-[0-9]+` $labels.instance }} {{ match `x` $labels.job }}",
		"{{ reReplaceAll `(.*):(.*)` `$2 on ${1}!` $labels.instance }}", "{{ $labels.instance | reReplaceAll `[.:]` `_` }}", "{{ reReplaceAll `` `-` $labels.job }}", "{{ reReplaceAll `x*` `$1` `axxb` }}",
		`{{ index $labels "job" }}`, "{{ $x := $labels.job }}{{ $x }}{{ len $x }}", `{{ "12" | humanize }}`,
	} {
		for _, v := range []float64{0, 1, -1, 5, 0.2534, 1e-7, -3.5e-22, 999.99, 1000, 1024, 1025, 123456789, 1e30, -7e24, 1764200000, math.NaN(), math.Inf(1), math.Inf(-1)} {
			filler, err := New(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			data := template.AlertTemplateData(labels, nil, "", promql.Sample{F: v})
			prefix := "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
			want, err := template.NewTemplateExpander(context.Background(), prefix+text, "alert", data, model.Now(), nil, &url.URL{}, nil).Expand()
			if err != nil { // of a number that is not a time
				want = "<error expanding template: "
			}
			if got := filler.Fill(v, labels); got != want && (err == nil || !strings.HasPrefix(got, want)) {
				t.Errorf("%s of %v: %q, want %q", text, v, got, want)
			}
		}
	}
}

// A pattern that comes of a label, and what replaces much by more, end within bounds, and the text says so.
func TestExpressionsAreBounded(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"{{ match $labels.bad `x` }}":                      "error parsing regexp",
		"{{ match `x` $labels.long }}":                     "a text to match has 5000 bytes; the limit is 4096",
		"{{ reReplaceAll `x` $labels.some $labels.some }}": "it makes more than 16384 bytes",
	} {
		filler, err := New(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got := filler.Fill(1, map[string]string{"bad": "(", "long": strings.Repeat("x", 5000), "some": strings.Repeat("x", 4000)})
		if !strings.HasPrefix(got, "<error expanding template: ") || !strings.Contains(got, says) {
			t.Errorf("%s: %.200s, want %q", text, got, says)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"{{ $value":                                          "cannot be read",
		"{{ nothing }}":                                      `function "nothing" not defined`,
		"{{ $nothing }}":                                     "undefined variable",
		"{{ query `up` | first | value }}":                   "query is not built",
		"{{ range $labels }}x{{ end }}":                      "range is not built",
		`{{ define "a" }}x{{ end }}`:                         "define and block are not built",
		`{{ template "a" }}`:                                 "template is not built",
		"{{ if 1 }}{{ range . }}{{end}}{{end}}":              "range is not built",
		"{{ $externalURL }}":                                 "$externalURL is not built",
		"{{ tableLink `up` }}":                               "tableLink is not built",
		"{{ reReplaceAll `(` `b` `c` }}":                     "reReplaceAll: error parsing regexp",
		"{{ `x` | match `(a{100}){9}` }}":                    "match: the regular expression",
		"{{ match `" + strings.Repeat("a", 257) + "` `c` }}": "match: a regular expression has 257 bytes; the limit is 256",
	} {
		if _, err := New(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// What a template makes is bounded, and its failure is a text.
func TestFillIsBounded(t *testing.T) {
	t.Parallel()
	doubles := "{{ $x := printf `%s` `0123456789` }}" + strings.Repeat("{{ $x = printf `%s%s` $x $x }}", 100) + "{{ $x }}"
	for text, says := range map[string]string{
		doubles:                        "it makes more than",
		"{{ printf `%999999999d` 1 }}": "widths and precisions",
		"{{ printf `%.999999f` 1.0 }}": "widths and precisions",
		"{{ printf `%*d` 999999 1 }}":  "widths and precisions",
		"{{ printf `%[1]*d` 9999 1 }}": "widths and precisions",
		"{{ print 1 }}":                "are not built",
		"{{ humanize `x` }}":           "invalid syntax",
	} {
		filler, err := New(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := filler.Fill(1, nil); !strings.HasPrefix(got, "<error expanding template") || !strings.Contains(got, says) {
			t.Errorf("%.60s: %.200s, want %q", text, got, says)
		}
	}
}

func TestVaries(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"x": false, "{{ $labels.a }}": false, "{{ .Labels.Value }}": true, "{{ .Labels.a }}": false, "{{ $value }}": true, "{{ .Value | humanize }}": true, "{{ if gt $value 1.0 }}a{{ end }}": true,
		"{{ if $labels.a }}b{{ else }}{{ $value }}{{ end }}": true, "{{ printf `%v` . }}": true, "{{ printf `%v` $ }}": true, "{{ with $labels.a }}{{ . }}{{ end }}": true,
	} {
		filler, err := New(text)
		if err != nil {
			t.Fatal(err)
		}
		if filler.Varies != want {
			t.Errorf("%s: %v", text, filler.Varies)
		}
	}
}
