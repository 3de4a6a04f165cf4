package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/timers"
)

// everything is an API with every part that has routes. None of them is asked.
func everything() *http.ServeMux {
	mux := http.NewServeMux()
	New(Config{
		Anyone:    true,
		Verify:    func(context.Context, string, func(int, int)) (*verify.Report, error) { panic("asked") },
		Eraser:    func(context.Context, func(erasure.Progress)) (*erasure.Eraser, error) { panic("asked") },
		Timers:    func(context.Context, string) (*timers.Timers, error) { panic("asked") },
		Documents: func(context.Context, string) (*documents.Collection, error) { panic("asked") },
		Metrics:   http.NotFoundHandler(),
		MCP:       http.NotFoundHandler(),
		Replayer:  &replay.Replayer{}, Letters: &deadletters.Letters{},
	}).Add(mux)
	return mux
}

// Every operation has a route here, but for the input of lines, which has a package of its own.
func TestEveryOperationHasARoute(t *testing.T) {
	t.Parallel()
	mux := everything()
	for _, op := range operations.All {
		for _, want := range op.Patterns() {
			path := strings.NewReplacer("{$}", "", "{", "", "}", "").Replace(want)
			_, got := mux.Handler(httptest.NewRequestWithContext(t.Context(), op.Method, path[len(op.Method)+1:], nil))
			if op == &operations.SendEvents {
				want = ""
			}
			if got != want {
				t.Errorf("%s is served by %q", want, got)
			}
			if want != "" && operations.Of(want) != op {
				t.Errorf("%s is not of its operation", want)
			}
		}
	}
}

// The document is an OpenAPI document, and every component of it is used.
func TestSpecification(t *testing.T) {
	t.Parallel()
	text := string(Spec())
	doc, err := openapi3.NewLoader().LoadFromData(Spec())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name := range doc.Components.Schemas {
		if !strings.Contains(text, "'#/components/schemas/"+name+"'") {
			t.Errorf("nothing is answered with %s", name)
		}
	}
	n := 0
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			n++
			var names []string
			for _, p := range op.Parameters {
				if p.Value.Description == "" {
					t.Errorf("%s %s: parameter %s says nothing of itself", method, path, p.Value.Name)
				}
				names = append(names, p.Value.In+" "+p.Value.Name)
			}
			if slices.Sort(names); len(slices.Compact(names)) != len(op.Parameters) {
				t.Errorf("%s %s has a parameter twice: %v", method, path, names)
			}
		}
	}
	if n != len(operations.All) {
		t.Errorf("%d operations of %d: two have the same route", n, len(operations.All))
	}
	// What the type of an answer says, and what is said of it.
	page := doc.Components.Schemas["Page"].Value
	if got := page.Properties["events"].Value.Items.Ref; got != "#/components/schemas/Event" || page.AdditionalProperties.Has == nil || *page.AdditionalProperties.Has || !slices.Equal(page.Required, []string{"events", "shards"}) {
		t.Errorf("a page: events %q, %+v", got, page)
	}
	if got := doc.Components.Schemas["EraseRequest"].Value.Required; !slices.Equal(got, []string{"topic"}) {
		t.Errorf("a request to erase needs %v", got)
	}
}
