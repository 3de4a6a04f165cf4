package api

import (
	_ "embed" // of the specification
	"net/http"
)

//go:embed openapi.yaml
var spec []byte

// Spec returns the specification of the API, as /openapi.yaml serves it.
func Spec() []byte { return spec }

// addSpec adds the specification.
func (a *API) addSpec(mux *http.ServeMux) {
	mux.HandleFunc("GET /openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(spec)
	})
}
