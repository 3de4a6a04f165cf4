package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// checkExit fails where a verb ended with a code that is not of every verb, and that it does not declare.
func checkExit(t *testing.T, args []string, code int) {
	t.Helper()
	if code != exitPartial && code != exitConflict && code != exitHung {
		return
	}
	cmd, _, err := (&app{}).root().Find(args)
	if err == nil && exitsOf(cmd)[code] == "" {
		t.Errorf("%s ends with exit code %d, which it does not declare", cmd.CommandPath(), code)
	}
}

// The process ends with codes that exitCodes has, and each is there once, with what to do.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	declared := map[string]int{}
	for _, f := range parsed(t, ".") {
		for _, d := range f.Decls {
			g, is := d.(*ast.GenDecl)
			if !is || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				if name := v.Names[0].Name; isExit(name) && len(v.Values) == 1 {
					declared[name], _ = strconv.Atoi(v.Values[0].(*ast.BasicLit).Value)
				}
			}
		}
	}
	if len(declared) != len(exitCodes) {
		t.Errorf("%d constants and %d entries of exitCodes", len(declared), len(exitCodes))
	}
	for name, code := range declared {
		i := slices.IndexFunc(exitCodes, func(x exitKind) bool { return x.Code == code })
		if i < 0 {
			t.Errorf("%s = %d is not in exitCodes", name, code)
		} else if x := exitCodes[i]; x.Name == "" || x.Meaning == "" || x.Remedy == "" {
			t.Errorf("%s says too little: %+v", name, x)
		}
	}
	ends := 0
	for path, f := range parsed(t, "../..") {
		own := strings.HasPrefix(path, "../../cmd/")
		if !own && (f.Name.Name == "main" || strings.HasSuffix(f.Name.Name, "test") || strings.HasPrefix(path, "../../integration/")) {
			continue // programs of development, and harness
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if isCall(n, "os", "Exit") {
					ends++
					if !mayEnd(n.Args[0]) {
						t.Errorf("%s: os.Exit with what exitCodes does not have", path)
					}
				}
			case *ast.FuncDecl:
				if n.Name.Name != "exitCode" || f.Name.Name != "main" {
					return true
				}
				ast.Inspect(n, func(n ast.Node) bool {
					if r, is := n.(*ast.ReturnStmt); is && !mayEnd(r.Results[0]) {
						t.Errorf("%s: exitCode returns what exitCodes does not have", path)
					}
					return true
				})
			}
			return true
		})
	}
	if ends == 0 {
		t.Error("no os.Exit was found: the test looks in the wrong place")
	}
}

// A text that names a code is of a verb that declares it, and help has what is declared.
func TestExitCodesInHelp(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`(?i)\bexits?(?: codes?)?(?: with)? (\d+)`)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		e := exitsOf(c)
		for code, means := range e {
			if ofAll()[code] == "" || means == "" || !strings.Contains(c.Long, strconv.Itoa(code)+" ") || !strings.Contains(c.Long, means) {
				t.Errorf("%s: exit code %d %q", c.CommandPath(), code, means)
			}
		}
		for _, m := range named.FindAllStringSubmatch(c.Long+"\n"+c.LocalFlags().FlagUsages(), -1) {
			if code, _ := strconv.Atoi(m[1]); e[code] == "" {
				t.Errorf("%s: the help names exit code %d, which is not declared", c.CommandPath(), code)
			}
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	root := (&app{}).root()
	walk(root)
	if e := exitsOf(root); len(e) != len(exitCodes) {
		t.Errorf("`almanac help` has %d of %d exit codes", len(e), len(exitCodes))
	}
}

// parsed are the files below a folder that are not tests, by their paths.
func parsed(t *testing.T, folder string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func isExit(name string) bool {
	return strings.HasPrefix(name, "exit") && len(name) > 4 && name[4] >= 'A' && name[4] <= 'Z' && name != "exitNote" && name != "exitCode"
}

func isCall(c *ast.CallExpr, pkg, name string) bool {
	s, is := c.Fun.(*ast.SelectorExpr)
	if !is || s.Sel.Name != name {
		return false
	}
	x, is := s.X.(*ast.Ident)
	return is && x.Name == pkg
}

// mayEnd says that a value is a code of exitCodes, or comes from what returns one.
func mayEnd(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return isExit(e.Name)
	case *ast.CallExpr:
		f, is := e.Fun.(*ast.Ident)
		return is && f.Name == "run" || isCall(e, "embedded", "EngineMain")
	}
	return false
}
