package api

import (
	"net/http"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/internal/operations/openapi"
)

// document is the specification. It is made once, of the operations and the types of their answers. It panics where
// those do not fit together, which a test finds.
var document = sync.OnceValue(func() *openapi.Document {
	d, err := openapi.Make(openapi.Info{
		Title: "Almanac", Version: "1",
		Description: "Events in as lines, and every read. Inputs for other programs (OTLP, Loki, Elasticsearch, syslog) follow the\n" +
			"specifications of those. Times are RFC 3339, a date, now, or a distance back such as -15m.\n",
	}, operations.All, &types)
	if err != nil {
		panic("openapi: " + err.Error())
	}
	return d
})

// Spec returns the specification of the API, as /openapi.yaml serves it.
var Spec = sync.OnceValue(func() []byte {
	text, err := yaml.Marshal(document())
	if err != nil {
		panic("openapi: " + err.Error())
	}
	return text
})

// addSpec adds the specification.
func (a *API) addSpec(on routes) {
	on.serve(&operations.Specification, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(Spec())
	})
}
