package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// firstName matches a comment that begins with a word in lower case, as that of a name which is not exported does.
var firstName = regexp.MustCompile(`^// ([a-z]\w*)[ ,:.]`)

// checkDocs prints the comments of a Go file that stand over a name and begin with another, and reports whether
// there are any. So a name that was changed takes its comment along. What begins with a capital is a sentence.
func checkDocs(path, src string) (bad bool) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return false // checkNames says so
	}
	for _, d := range documented(f) {
		if m := firstName.FindStringSubmatch(d.doc.List[0].Text); m != nil && m[1] != d.name {
			fmt.Printf("%s: the comment over %s begins with %q: begin with the name, or with a capital\n", files.Position(d.doc.Pos()), d.name, m[1])
			bad = true
		}
	}
	return bad
}

// document is a declared name with the comment over it.
type document struct {
	name string
	doc  *ast.CommentGroup
}

// documented returns what a file declares under a comment of its own. A comment over a block is of none of its names.
func documented(f *ast.File) (out []document) {
	add := func(name *ast.Ident, doc *ast.CommentGroup) {
		if doc != nil && strings.HasPrefix(doc.List[0].Text, "// ") {
			out = append(out, document{name.Name, doc})
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(d.Name, d.Doc)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					add(s.Names[0], over(d, s.Doc))
				case *ast.TypeSpec:
					add(s.Name, over(d, s.Doc))
				}
			}
		}
	}
	return out
}

// over is the comment over one specification of a declaration.
func over(d *ast.GenDecl, own *ast.CommentGroup) *ast.CommentGroup {
	if own == nil && !d.Lparen.IsValid() {
		return d.Doc
	}
	return own
}
