package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// MaxMedianWords is the most words that the median sentence of a document may have.
const MaxMedianWords = 18

// maxLines are bounds of documents that grow by merging: a newcomer reads the first, and the second is for users alone.
var maxLines = map[string]int{"README.md": 250, "CHANGELOG.md": 70}

// retired are the words that the tree no longer uses, each with what to write.
var retired = []struct {
	word    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\banew\b`), "again, or the verb: rebuild, restore, re-read"},
	{regexp.MustCompile(`\b([Nn]obody|[Ss]omebody)\b`), "no part, another process, a caller"},
	{regexp.MustCompile(`(?i)\bwhoever\b`), "the part: a caller, the process that, a reader that"},
	{regexp.MustCompile(`(?i)\bknock(s|ed)?\b`), "probe"},
	{regexp.MustCompile(`(?i)\bfarewell\b`), "drain timeout"},
	{regexp.MustCompile(`(?i)\bcomplaint\b`), "format error"},
	{regexp.MustCompile(`(?i)\bfor ever\b`), "without end, forever"},
	{regexp.MustCompile(`(?i)\bput back\b`), "restore"},
	{regexp.MustCompile(`(?i)\bhas none\b`), "does not have one"},
	{regexp.MustCompile(`(?i)(\w+ )?\b(is|are|was|were) no [\w-]+`), "is not a …, are not …"},
}

// plain matches what a word above finds and is plain English: "there is no", "no longer".
var plain = regexp.MustCompile(`(?i)^(there|where) |no (longer|more|later|larger|less|other|older|newer|one)$`)

func main() {
	bad := false
	for _, path := range files(".md", "doc.go") {
		words := sentences(read(path))
		if len(words) == 0 || strings.HasSuffix(path, "CHANGELOG.md") {
			continue
		}
		slices.Sort(words)
		median := words[len(words)/2]
		fmt.Printf("%3d median, %3d longest, %4d sentences  %s\n", median, words[len(words)-1], len(words), path)
		if median > MaxMedianWords {
			fmt.Printf("%s: the median sentence has %d words, at most %d: split the long ones\n", path, median, MaxMedianWords)
			bad = true
		}
	}
	for path, most := range maxLines {
		if n := strings.Count(whole(path), "\n"); n > most {
			fmt.Printf("%s: %d lines, at most %d: shorten it, git log has the rest\n", path, n, most)
			bad = true
		}
	}
	for _, path := range files(".md") {
		if checkPaths(path) {
			bad = true
		}
	}
	for _, path := range files(".md", ".go") {
		if strings.HasPrefix(path, "internal/lint/prose/") {
			continue
		}
		for n, line := range strings.Split(read(path), "\n") {
			for _, r := range retired {
				if w := r.word.FindString(line); w != "" && !plain.MatchString(w) {
					fmt.Printf("%s:%d: %q is retired, write: %s\n", path, n+1, w, r.instead)
					bad = true
				}
			}
		}
	}
	if checkRows() {
		bad = true
	}
	if checkComments() {
		bad = true
	}
	for _, path := range files(".go") {
		src := whole(path)
		if named, documented := checkNames(path, src), checkDocs(path, src); !named && !documented {
			continue
		}
		bad = true
	}
	if bad {
		os.Exit(1)
	}
}

// otherModule reports whether a folder is a module of its own.
func otherModule(path string) bool {
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}

// files returns the paths below this folder that end in one of the suffixes.
func files(suffixes ...string) (out []string) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || otherModule(path)) {
			return filepath.SkipDir
		}
		if slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(path, s) }) && !d.IsDir() {
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	return out
}

// whole returns a file as it is.
func whole(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	return string(data)
}

// read returns the text of a file that people read.
func read(path string) string {
	data := whole(path)
	if !strings.HasSuffix(path, "doc.go") {
		return data
	}
	// Comments of the package alone; indented lines are drawings and code.
	var b bytes.Buffer
	for line := range strings.Lines(data) {
		if text, ok := strings.CutPrefix(line, "//"); ok {
			if strings.HasPrefix(text, "\t") {
				text = "\n"
			}
			b.WriteString(strings.TrimPrefix(text, " "))
		}
	}
	return b.String()
}

var (
	fenced    = regexp.MustCompile("(?s)```.*?```")
	inline    = regexp.MustCompile("`[^`]*`")
	link      = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	paragraph = regexp.MustCompile(`\n\s*\n|\n(?:[-*#|]|\s+-|\d+\.) ?`)
	stop      = regexp.MustCompile(`[.!?]["')]*(\s+|$)`)
)

// sentences returns the number of words of each sentence of a text. Code, headings
// and tables do not count.
func sentences(text string) (words []int) {
	text = fenced.ReplaceAllString(text, "\n\n")
	text = regexp.MustCompile(`(?m)^[ \t]*[#|<].*$`).ReplaceAllString(text, "")
	text = link.ReplaceAllString(inline.ReplaceAllString(text, "X"), "$1")
	for _, p := range paragraph.Split("\n"+text, -1) {
		for _, s := range stop.Split(strings.Join(strings.Fields(p), " "), -1) {
			if n := len(strings.Fields(s)); n > 1 {
				words = append(words, n)
			}
		}
	}
	return words
}
