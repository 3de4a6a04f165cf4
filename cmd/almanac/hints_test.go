package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Whatever a message, a document or a file of deploy tells people to run is a verb that there is, with flags that it has; and no message
// names a program that Almanac does not ship.
func TestHintsNameWhatIsThere(t *testing.T) {
	t.Parallel()
	found, root := 0, wholeRoot()
	told(t, func(path string, texts []string) {
		for _, text := range texts {
			n, wrong := hints(root, text)
			found += n
			for _, w := range wrong {
				t.Errorf("%s: %s", path, w)
			}
			if filepath.Ext(path) == ".go" {
				if other := foreignProgram.FindString(text); other != "" && !strings.Contains(text, "which Almanac does not ship") {
					t.Errorf("%s: %q is not a program of Almanac's", path, other)
				}
			}
		}
	})
	if found < 200 {
		t.Errorf("%d commands were found, there are more", found)
	}
}

// wholeRoot is the command with the verbs that cobra adds.
func wholeRoot() *cobra.Command {
	root := (&app{}).root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// told calls f with what each file of the tree tells people: the strings of a Go file, and the parts of a document or of a file of deploy that show
// what is typed.
func told(t *testing.T, f func(path string, texts []string)) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if name := e.Name(); name == "node_modules" || name == "testdata" || name == "compare" || strings.HasPrefix(name, ".") && name != ".." {
				return filepath.SkipDir
			}
			return nil
		}
		var texts []string
		switch filepath.Ext(path) {
		case ".go":
			if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/lint/") {
				return nil
			}
			texts, err = literals(path)
		case ".md", ".yaml", ".yml", ".tpl", ".service", ".txt":
			var text []byte
			text, err = os.ReadFile(path)
			texts = quoted.FindAllString(string(text), -1)
		}
		f(path, texts)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	// quoted are the parts of a document that show what is typed.
	quoted = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	// typedCommand is the program with words and flags after it.
	typedCommand = regexp.MustCompile(`\balmanac((?:[ \t]+[a-z][a-z-]*\b)+)((?:[ \t]+[^\n` + "`" + `|;&#)]*)?)`)
	flagged      = regexp.MustCompile(`(?:^|\s)--([a-z][a-z0-9-]*)`)
	// foreignProgram are tools of the servers, which who reads a message may not have.
	foreignProgram = regexp.MustCompile("`(nats (stream|consumer|account|kv|server|context)|natscli|clickhouse-client|nsc )")
)

// notVerbs are words after almanac where no command is meant: an annotation, sentences, names of connections, a line of Elastic's, and
// what hashes and the comment of an engine's database begin with.
var notVerbs = map[string]bool{"exit": true, "almanac": true, "beside": true, "program": true, "green": true, "producer": true, "keyed": true, "seal": true, "format": true}

// literals are the string literals of a Go file.
func literals(path string) (texts []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts, nil
}

// hints returns how many commands a text names, and what is wrong with them.
func hints(root *cobra.Command, text string) (n int, wrong []string) {
	for _, m := range typedCommand.FindAllStringSubmatch(text, -1) {
		words := strings.Fields(m[1])
		if notVerbs[words[0]] {
			continue
		}
		n++
		c, _, err := root.Find(words)
		if err == nil && !c.HasParent() {
			err = errors.New("no such verb")
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%q: %v", strings.TrimSpace(m[0]), err))
			continue
		}
		for _, f := range flagged.FindAllStringSubmatch(m[0], -1) {
			if !hasFlag(c, f[1]) {
				wrong = append(wrong, fmt.Sprintf("%q: %s has no flag --%s", strings.TrimSpace(m[0]), c.CommandPath(), f[1]))
			}
		}
	}
	return n, wrong
}

func hasFlag(c *cobra.Command, name string) bool {
	return name == "help" || c.Flags().Lookup(name) != nil || c.InheritedFlags().Lookup(name) != nil
}
