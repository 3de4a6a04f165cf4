package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// mutant is one change of a file: the text from From to To becomes Text.
type mutant struct {
	From, To int
	Line     int
	Text     string
	What     string // such as "== becomes !="
}

// apply returns the file with the change.
func (m *mutant) apply(src string) string { return src[:m.From] + m.Text + src[m.To:] }

// instead says which operators an operator becomes.
var instead = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD,
}

// mutants returns every change of a file that is tried. What is a text's own (a concatenation) stays.
func mutants(src string) ([]mutant, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", src, 0)
	if err != nil {
		return nil, err
	}
	var out []mutant
	add := func(from, to token.Pos, text, what string) {
		at := files.Position(from)
		out = append(out, mutant{From: at.Offset, To: files.Position(to).Offset, Line: at.Line, Text: text, What: what})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok == token.VAR // constants and types are not behaviour of one place
		case *ast.BinaryExpr:
			to, ok := instead[n.Op]
			if ok && !isText(n.X) && !isText(n.Y) {
				add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to.String(), fmt.Sprintf("%s becomes %s", n.Op, to))
			}
		case *ast.IfStmt:
			add(n.Cond.Pos(), n.Cond.End(), "!("+src[files.Position(n.Cond.Pos()).Offset:files.Position(n.Cond.End()).Offset]+")", "the condition is negated")
		case *ast.ExprStmt:
			if _, ok := n.X.(*ast.CallExpr); ok {
				add(n.Pos(), n.End(), "", "the call is gone: "+firstLine(src[files.Position(n.Pos()).Offset:files.Position(n.End()).Offset]))
			}
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				add(n.Pos(), n.End(), "", "the assignment is gone: "+firstLine(src[files.Position(n.Pos()).Offset:files.Position(n.End()).Offset]))
			}
		case *ast.BranchStmt:
			if n.Tok == token.CONTINUE && n.Label == nil {
				add(n.Pos(), n.End(), "", "continue is gone")
			}
		case *ast.Ident:
			if n.Name == "true" {
				add(n.Pos(), n.End(), "false", "true becomes false")
			}
		}
		return true
	})
	return out, nil
}

// isText reports whether an operand is a text, of which + makes a longer one.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return isText(e.X) || isText(e.Y)
	}
	return false
}

func firstLine(s string) string {
	line, _, more := strings.Cut(s, "\n")
	if more {
		line += " …"
	}
	return line
}
