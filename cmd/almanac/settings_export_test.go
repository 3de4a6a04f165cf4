package main

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// Headers of otlp_export are read as OpenTelemetry writes them, and what is refused of them is not said.
func TestExportHeaders(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]http.Header{
		"":                                 nil,
		"authorization=Bearer%20abc%2C%3D": {"Authorization": {"Bearer abc,="}},
		" x-scope-orgid = app , x-scope-orgid=b=c": {"X-Scope-Orgid": {"app", "b=c"}},
	} {
		var s settings
		if err := exportHeaders(&s, text); err != nil || !reflect.DeepEqual(s.OTLPExportHeaders, want) {
			t.Errorf("%q: %v, %v", text, s.OTLPExportHeaders, err)
		}
	}
	for name, text := range map[string]string{
		"no value": "hush", "an empty value": "hush=", "no name": "=hush", "a name with a space": "a b=hush", "a value with a line": "a=hush%0A", "half an escape": "a=hush%2",
		"a second without a value": "a=hush,b", "our own": "content-type=hush",
	} {
		if err := exportHeaders(&settings{}, text); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
