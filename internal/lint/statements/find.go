package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// maxLines is the most lines that a statement may have in Go, and lineBytes what counts as one.
const (
	maxLines  = 3
	lineBytes = 120
)

// found is a statement in the text of a program.
type found struct {
	line  int // of the file
	lines int // of the statement
	text  string
}

// statement is how a statement begins, or what it is in.
var statement = regexp.MustCompile(`^[\s(]*(SELECT|INSERT INTO|DELETE FROM|ALTER TABLE|OPTIMIZE TABLE|DROP (TABLE|DATABASE|VIEW)|CREATE (TABLE|DATABASE|VIEW|OR REPLACE)|EXCHANGE TABLES|RENAME TABLE|TRUNCATE|SYSTEM|KILL|EXPLAIN) |\(SELECT `)

// statements finds the SQL in the texts of a file: of each literal, and of each sum of literals and
// other expressions, which stand as a question mark.
func statements(path string, source any) (all []found, err error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field: // a field's text is a tag
			_, tag := n.(*ast.Field)
			return tag && n.(*ast.Field).Tag == nil
		case *ast.BasicLit, *ast.BinaryExpr:
			text, literal := textOf(n.(ast.Expr))
			if !literal {
				return true // such as a comparison, whose sides may be
			}
			if statement.MatchString(text) {
				all = append(all, found{files.Position(n.Pos()).Line, linesOf(text), text})
			}
			return false
		}
		return true
	})
	return all, nil
}

// textOf is the text of a sum, and whether a literal is in it.
func textOf(e ast.Expr) (text string, literal bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.ParenExpr:
		return textOf(e.X)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		a, first := textOf(e.X)
		b, second := textOf(e.Y)
		return a + b, first || second
	}
	return "?", false
}

// linesOf is how many lines a statement is long, of which none has more than lineBytes.
func linesOf(text string) (n int) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		n += max(1, (len(strings.TrimSpace(line))+lineBytes-1)/lineBytes)
	}
	return n
}
