package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// retiredNames are the words that no declared name has, each with what to say. A word is retired with its forms:
// settle, settles, settled, settling.
var retiredNames = map[string]string{
	"tally": "stats, histogram, record, report", "settle": "ack, resolve, complete, stored", "judge": "validate, evaluate, decide", "verdict": "result",
	"board": "schedule", "lull": "idle", "calm": "idle", "patience": "max wait", "stray": "unroutable", "strike": "filter erased",
	"house": "cluster, environment", "room": "space, usage", "door": "endpoint, way", "knock": "probe", "standing": "snapshot", "beside": "with, second, side",
	"feed": "tailer", "heading": "meta", "squeeze": "codec choice", "examination": "check", "vandal": "corrupter", "weather": "ambient faults",
	"farewell": "drain timeout", "complaint": "format error", "mend": "repair", "anew": "again", "nobody": "none",
}

// known are words of others, or of people, that hold a retired one.
var known = regexp.MustCompile(`(?i)clickhouses?|warehouse|housekeeping|dashboard|keyboard|FrontDoor`)

var word = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`)

// retiredIn returns the retired word that a name has, and what to say.
func retiredIn(name string) (found, instead string) {
	for _, w := range word.FindAllString(known.ReplaceAllString(name, "_"), -1) {
		w = strings.ToLower(w)
		for _, end := range []string{"", "s", "d", "ed", "ing", "es"} {
			stem, ok := strings.CutSuffix(w, end)
			if !ok {
				continue
			}
			for _, try := range []string{stem, stem + "e", strings.TrimSuffix(stem, "i") + "y"} {
				if say, ok := retiredNames[try]; ok {
					return try, say
				}
			}
		}
	}
	return "", ""
}

// checkNames prints the declared names of a Go file that have a retired word, and reports whether there are any.
func checkNames(path, src string) (bad bool) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, src, parser.SkipObjectResolution)
	if err != nil {
		fmt.Printf("%s: %v\n", path, err)
		return true
	}
	for _, id := range declared(f) {
		if w, instead := retiredIn(id.Name); w != "" {
			fmt.Printf("%s: %s: the word %q is retired in names, say: %s\n", files.Position(id.Pos()), id.Name, w, instead)
			bad = true
		}
	}
	return bad
}

// declared returns the names that a file declares for others of its package: functions, types, their
// fields and methods, variables, constants.
func declared(f *ast.File) (ids []*ast.Ident) {
	fields := func(list *ast.FieldList) {
		for _, field := range list.List {
			ids = append(ids, field.Names...)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			ids = append(ids, d.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					ids = append(ids, s.Names...)
				case *ast.TypeSpec:
					ids = append(ids, s.Name)
					switch t := s.Type.(type) {
					case *ast.StructType:
						fields(t.Fields)
					case *ast.InterfaceType:
						fields(t.Methods)
					}
				}
			}
		}
	}
	return ids
}
