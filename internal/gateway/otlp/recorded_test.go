package otlp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
)

// The examples of OpenTelemetry's specification.
func TestExamplesOfTheSpecification(t *testing.T) {
	t.Parallel()
	inputtest.Same(t, decoded(t, inputtest.RecordedBytes(t, "../otlp/logs.json"), true), `
ts 2018-12-13T14:51:00.3Z
level info
service my.service
trace_id 5b8efff798038103d269b633813fc60c
span_id eee19b7ec3c1b174
message Example log record
  string.attribute some string
  boolean.attribute:bool true
  int.attribute:int 10
  double.attribute:float 637.704
  array.attribute ["many","values"]
  map.attribute.some.map.key some value
  severity_number:int 10
  scope.name my.library
  scope.version 1.0.0
  scope.my.scope.attribute some scope attribute
`)
	inputtest.Same(t, decoded(t, inputtest.RecordedBytes(t, "../otlp/events.json"), true), `
ts 2018-12-13T14:51:00.3Z
level info
service my.service
type browser.page_view
message {"referrer":"https://wwww.google.com","title":"Free Online GUID Generator","type":0,"url":"https://www.guidgenerator.com/online-guid-generator.aspx"}
  event.attribute some event attribute
  severity_text test severity text
  scope.name my.library
  scope.version 1.0.0
  scope.my.scope.attribute some scope attribute
`)
}

// Traces of real programs are refused in their content type, so that no exporter sends
// them again.
func TestRecordedTraces(t *testing.T) {
	t.Parallel()
	_, _, srv := serve(t)
	for _, name := range []string{"otel-cli-span.1", "telemetrygen-traces-otlp-http.1", "telemetrygen-traces-otlp-http.2"} {
		r := inputtest.Recorded(t, name)
		a := inputtest.Send(t, r.Method, srv.URL+r.Path, r.Headers, r.Body)
		if a.Status != http.StatusNotFound || a.Header.Get("Content-Type") != r.Headers["Content-Type"] || !strings.Contains(string(a.Body), "traces") {
			t.Errorf("%s: %d %s %q", name, a.Status, a.Header.Get("Content-Type"), a.Body)
		}
	}
}
