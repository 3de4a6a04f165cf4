package sql

import (
	"embed"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"text/template"
)

//go:embed usage series tables
var statementFiles embed.FS

// statements are the templates of statements, by path without ".sql".
var statements = parseStatements(statementFiles)

// remark is a line of a template that is for its reader, and is not sent.
var remark = regexp.MustCompile(`(?m)^[ \t]*--.*\n`)

// parseStatements parses every template, so that one which cannot be read ends every test.
func parseStatements(files fs.FS) *template.Template {
	all := template.New("")
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".sql" {
			return err
		}
		text, err := fs.ReadFile(files, file)
		if err == nil {
			_, err = all.New(strings.TrimSuffix(file, ".sql")).Parse(strings.TrimSpace(remark.ReplaceAllString(string(text), "")))
		}
		return err
	})
	return template.Must(all, err)
}

// fill is a statement with its parameters.
func fill(name string, parameters any) string {
	var b strings.Builder
	if err := statements.ExecuteTemplate(&b, name, parameters); err != nil {
		panic(err) // the templates are constants: tests run all of them
	}
	return b.String()
}
