package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	// comment is a line's comment: text after the slashes.
	comment = regexp.MustCompile(`(?:^|\s)//([^/].*)$`)
	written = regexp.MustCompile(`\w+`)
	// mixed is a name in mixed caps; file is a Go file.
	mixed  = regexp.MustCompile(`\b(?:[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)\b`)
	goFile = regexp.MustCompile(`[\w/]+\.go\b`)
)

// foreign are names in comments that other programs, formats and libraries gave.
var foreign = map[string]bool{
	"ChaCha8": true, "CityHash": true, "CloudEvent": true, "CompressedReadBuffer": true, "CustomDialer": true, "ExportLogsServiceRequest": true,
	"FinOps": true, "IsValid": true, "JavaScript": true, "LabelPair": true, "LogValuers": true, "MurmurHash3": true, "PushRequest": true,
	"SpanContextFromContext": true, "SplitMix64": true, "defaultCacheBufferExpiration": true, "eraseMsg": true, "noPivot": true,
	"removeMsgFromBlock": true,
}

// stale returns the names in the comments of Go files that are no longer in the tree, by path and line: of what is
// declared or called, and of files. files are the texts by path.
func stale(files map[string]string) (bad []string) {
	code, names := map[string]bool{}, map[string]bool{}
	for path, text := range files {
		names[filepath.Base(path)] = true
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(strings.TrimSuffix(line, "\n"), "// ")
			for _, w := range written.FindAllString(line, -1) {
				code[w] = true
			}
		}
	}
	for path, text := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for n, line := range strings.Split(text, "\n") {
			m := comment.FindStringSubmatch(line)
			if m == nil || strings.HasPrefix(m[1], "go:") {
				continue
			}
			for _, w := range mixed.FindAllString(m[1], -1) {
				if !code[w] && !code[strings.TrimSuffix(w, "s")] && !foreign[w] {
					bad = append(bad, fmt.Sprintf("%s:%d: %s", path, n+1, w))
				}
			}
			for _, w := range goFile.FindAllString(m[1], -1) {
				if !names[filepath.Base(w)] {
					bad = append(bad, fmt.Sprintf("%s:%d: %s", path, n+1, w))
				}
			}
		}
	}
	return bad
}

// checkComments reports whether comments name what is gone.
func checkComments() (bad bool) {
	texts := map[string]string{}
	for _, path := range files(".go") {
		texts[path] = whole(path)
	}
	for _, found := range stale(texts) {
		fmt.Printf("%s is not in this tree any longer: say what took its place\n", found)
		bad = true
	}
	return bad
}
