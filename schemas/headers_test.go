package schemas

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// othersHeaders are those that a router does not set: it passes them on as they are written.
var othersHeaders = []string{
	HeaderRows, HeaderBytes, HeaderMinTs, HeaderMaxTs, HeaderSchema, HeaderProducer, HeaderSeq, HeaderPart, // frames, by producers
	HeaderCount,                                                                                                                                    // entries of the registry
	HeaderOp, HeaderVersion, HeaderKeyCreated, HeaderChanged, HeaderPath, HeaderBy, HeaderUser, HeaderNonce, HeaderStub, HeaderRefresh, HeaderLock, // documents
	HeaderLife, HeaderRevision, HeaderAttempt, HeaderDue, HeaderState, HeaderOwner, HeaderClaim, HeaderSpecSeq, // timers
	HeaderFirst, HeaderHost, HeaderCallStatus, HeaderCallError, HeaderCallDetail, HeaderCallTook, HeaderLate, // calls of timers
}

// Each header is decided about: a router's own, which it takes from no message, or another's.
func TestHeadersAreDecided(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	all := nats.Header{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			if name, err := strconv.Unquote(text.Value); err == nil && strings.HasPrefix(name, "Almanac-") {
				all.Set(name, "x")
			}
			return true
		})
	}
	if len(all) < len(routersHeaders) {
		t.Fatalf("the files have %d headers", len(all))
	}
	for name := range all {
		if router, other := slices.Contains(routersHeaders, name), slices.Contains(othersHeaders, name); router == other {
			t.Errorf("%s: a router sets it: %t, another: %t; it is one of both", name, router, other)
		}
	}
	for name := range WithoutRouters(all) {
		if slices.Contains(routersHeaders, name) {
			t.Errorf("%s of a producer stays", name)
		}
	}
}
