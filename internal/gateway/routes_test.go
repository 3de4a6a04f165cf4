package gateway

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// handled are the places where routes are put on a listener, by file and pattern, each with what says that its routes ask for a right.
var handled = map[string]string{
	"api/api.go: pattern":                          "operations.All, with the right of each",
	`gateway.go: "POST /v1/topics/{topic}/events"`: "operations.All: SendEvents",
	"gateway.go: mcp.Path":                         "each message is a request of a route of operations.All",
	`gateway.go: "/"`:                              "nothing is there",
	"shippers.go: pattern":                         "Foreign",
	"shippers.go: belowElastic":                    "the pool asks",
	"lokiread/lokiread.go: pattern":                "Foreign",
	"promapi/promapi.go: pattern":                  "Foreign",
	`otlp/http.go: "POST " + path`:                 "the pool asks",
	`otlp/http.go: "POST /t/{topic}" + path`:       "the pool asks",
	`otlp/http.go: "/"`:                            "nothing is there",
}

// A route that is put on a listener at another place fails here: say what asks for its right, and have the tests of rights in
// integration ask it (TestNoTokenOffLoopback, TestRightsToSend), unless they do by the list that it is of.
func TestEveryRouteIsOfAList(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "Handle" || f.Sel.Name == "HandleFunc") {
				place := filepath.ToSlash(path) + ": " + types.ExprString(call.Args[0])
				if seen[place] = true; handled[place] == "" {
					t.Errorf("%s: no list has this route", place)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for place := range handled {
		if !seen[place] {
			t.Errorf("%s: nothing is there", place)
		}
	}
}
